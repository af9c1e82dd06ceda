package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// anew is a Pod with restart policy Never whose containers all restart when the watcher ends with exit code 42,
// which it does the first time. Each container that runs writes a line to the volume.
func anew(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 600
  volumes: [{name: seen, emptyDir: {}}]
  initContainers:
  - name: setup
    image: %[2]s
    command: [sh, -c, "echo setup >> /seen/runs"]
    volumeMounts: [{name: seen, mountPath: /seen}]
  - name: sidecar
    image: %[2]s
    command: [sh, -c, "echo sidecar >> /seen/runs; exec sleep 3600"]
    volumeMounts: [{name: seen, mountPath: /seen}]
    restartPolicy: Always
  containers:
  - name: worker
    image: %[2]s
    command: [sh, -c, "exec sleep 3600"]
    volumeMounts: [{name: seen, mountPath: /seen}]
    lifecycle: {preStop: {exec: {command: [sh, -c, "echo preStop >> /seen/runs"]}}}
  - name: done
    image: %[2]s
    command: [sh, -c, "exit 0"]
  - name: watcher
    image: %[2]s
    command: [sh, -c, "test -e /seen/ended && exec sleep 3600; : > /seen/ended; sleep 3; exit 42"]
    volumeMounts: [{name: seen, mountPath: /seen}]
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]
`, name, Server)
}

// RestartAllContainers lets one container of a Pod end so that all of them start again, the init containers first and
// also what had succeeded. The Pod keeps its sandbox, its address and its volumes, and waits for nothing.
func RestartAllContainers(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(anew("anew"), "apply", "-f", "-")
	before := awaitPod(w, "anew", func(p *corev1.Pod) bool { return p.Status.PodIP != "" })
	after := awaitAllRestarted(w, "anew")
	if before.UID != after.UID || before.Status.PodIP != after.Status.PodIP {
		t.Errorf("the Pod %s at %s has become %s at %s", before.UID, before.Status.PodIP, after.UID, after.Status.PodIP)
	}
	for _, s := range slices.Concat(after.Status.InitContainerStatuses, after.Status.ContainerStatuses) {
		want := map[string]string{"setup": "Completed", "sidecar": "RestartingAllContainers",
			"worker": "RestartingAllContainers", "done": "Completed", "watcher": "Error"}[s.Name]
		last := s.LastTerminationState.Terminated
		if last == nil || last.Reason != want || s.Name == "watcher" && last.ExitCode != 42 {
			t.Errorf("%s: last %+v, want %s", s.Name, last, want)
		}
	}
}

// awaitAllRestarted waits until all containers of a Pod have started again once and those that shall run do. The volume
// holds then what each of them has written, in order.
func awaitAllRestarted(w *World, name string) *corev1.Pod {
	w.Helper()
	pod := awaitPod(w, name, func(p *corev1.Pod) bool {
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if ends := s.Name == "setup" || s.Name == "done"; s.RestartCount != 1 ||
				ends != (s.State.Terminated != nil) || ends == (s.State.Running != nil) {
				return false
			}
		}
		return p.Status.Phase == corev1.PodRunning
	})
	got := strings.Fields(w.Kubectl("exec", name, "-c", "worker", "--", "cat", "/seen/runs"))
	if want := []string{"setup", "sidecar", "setup", "sidecar"}; !slices.Equal(got, want) {
		w.Errorf("%s: ran %v, want %v", name, got, want)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.AllContainersRestarting && c.Status == corev1.ConditionFalse {
			return pod
		}
	}
	w.Errorf("%s: conditions %+v", name, pod.Status.Conditions)
	return pod
}

// restartsAllThroughCrashes ends the nodeagent before and after each step of a restart of all containers: they begin
// again, once. The Pod has five containers, so the sixth that is made or started is the first that starts again.
func restartsAllThroughCrashes(w *World, die Die) {
	for i, failpoint := range []string{"checkpoint.save.before=crash", "checkpoint.save.after=crash",
		"container.stop.before=crash", "container.stop.after=crash", "container.create.before=5*off->crash",
		"container.start.after=5*off->crash"} {
		name := fmt.Sprintf("anew-%d", i)
		die(w, mesh.NodeAgent, "nodeagent/"+failpoint, func() { w.KubectlWith(anew(name), "apply", "-f", "-") })
		awaitAllRestarted(w, name)
		w.Kubectl("delete", "pod", name, "--grace-period=1")
	}
}
