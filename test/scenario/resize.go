package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// sized is a Pod of two containers, one of which wants a restart where its memory changes.
const sized = `apiVersion: v1
kind: Pod
metadata: {name: sized}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: ` + Server + `
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}}
  - name: restarts
    image: ` + Server + `
    args: ["-http=:8081"]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}}
    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]
`

// InPlacePodResize gives running containers more and less, by kubectl patch and edit: what the kernel holds them to
// changes at once, what cannot be had is said, and nothing restarts that did not ask for it.
// DEP-214
func InPlacePodResize(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(sized, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/sized", "--timeout=60s")
	resizeContainer(w, "main", `{"limits":{"cpu":"300m","memory":"160Mi"}}`)
	awaitResources(w, "main", "300m", "160Mi", 0)
	awaitCgroupLimits(w, "main", 30000, 160<<20)

	resizeContainer(w, "main", `{"requests":{"cpu":"50m"},"limits":{"cpu":"100m","memory":"96Mi"}}`)
	awaitCgroupLimits(w, "main", 10000, 96<<20)

	resizeContainer(w, "restarts", `{"limits":{"cpu":"250m"}}`)
	awaitResources(w, "restarts", "250m", "128Mi", 0)
	resizeContainer(w, "restarts", `{"limits":{"memory":"80Mi"}}`)
	awaitResources(w, "restarts", "250m", "80Mi", 1)
	awaitCgroupLimits(w, "restarts", 25000, 80<<20)

	resizeContainer(w, "main", `{"requests":{"cpu":"900"},"limits":{"cpu":"900"}}`)
	awaitResizeCondition(w, corev1.PodResizePending, "Infeasible: Node didn't have enough capacity: cpu, requested: ")
	awaitResources(w, "main", "100m", "96Mi", 0)
	resizeContainer(w, "main", `{"requests":{"cpu":"50m","memory":"1Mi"},"limits":{"cpu":"100m","memory":"1Mi"}}`)
	awaitResizeCondition(w, corev1.PodResizeInProgress, "Error: cannot decrease memory limits: [")
	awaitResources(w, "main", "100m", "96Mi", 0)

	editResources(w, t, "1Mi", "112Mi")
	awaitCgroupLimits(w, "main", 10000, 112<<20)
	awaitResources(w, "main", "100m", "112Mi", 0)
	awaitResizeCondition(w, corev1.PodResizeInProgress, "")
	awaitResizeCondition(w, corev1.PodResizePending, "")

	refused := w.TryKubectl("", "patch", "pod", "sized", "--subresource", "resize", "--patch",
		`{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":null}}}]}}`)
	if !strings.Contains(refused.Stderr, "resource limits cannot be removed") {
		t.Errorf("a limit was taken away: %+v", refused)
	}
}

// resizeContainer asks for another size of a container of the Pod sized, as users do.
func resizeContainer(w *World, container, resources string) {
	w.Helper()
	w.Kubectl("patch", "pod", "sized", "--subresource", "resize", "--patch", fmt.Sprintf(
		`{"spec":{"containers":[{"name":%q,"resources":%s}]}}`, container, resources))
}

// editResources changes one amount of memory into another by kubectl edit.
func editResources(w *World, t *testing.T, from, to string) {
	w.Helper()
	editor := filepath.Join(t.TempDir(), "editor")
	script := fmt.Sprintf("#!/bin/sh\nexec sed -i 's/memory: %s$/memory: %s/' \"$1\"\n", from, to)
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	command := w.kubectl("edit", "pod", "sized", "--subresource", "resize")
	command.Env = append(command.Env, "KUBE_EDITOR="+editor)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl edit: %v\n%s", err, out)
	}
}

// awaitResources waits until the API says that the container has these limits after so many restarts.
func awaitResources(w *World, container, cpu, memory string, restarts int32) {
	w.Helper()
	w.Await("container "+container+" to have its size", func() Answer {
		pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), "sized", metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for i := range pod.Status.ContainerStatuses {
			s := &pod.Status.ContainerStatuses[i]
			if s.Name != container || s.Resources == nil {
				continue
			}
			limits := s.Resources.Limits
			got := fmt.Sprintf("%s %s after %d restarts, running %t", limits.Cpu(), limits.Memory(), s.RestartCount,
				s.State.Running != nil)
			if got == fmt.Sprintf("%s %s after %d restarts, running true", cpu, memory, restarts) {
				return ""
			}
			return Saw(got)
		}
		return "it has no resources in the status"
	})
}

// awaitCgroupLimits waits until the kernel holds the container to so much CPU time of each 100 ms, in microseconds, and
// memory.
func awaitCgroupLimits(w *World, container string, quota, memory int64) {
	w.Helper()
	want := map[string]bool{fmt.Sprintf("%d 100000\n%d\n", quota, memory): true,
		fmt.Sprintf("%d\n%d\n", quota, memory): true}
	files := [][]string{{"/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max"},
		{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}}
	w.Await("the kernel to hold container "+container+" to its limits", func() Answer {
		said := ""
		for _, pair := range files {
			r := w.TryKubectl("", append([]string{"exec", "sized", "-c", container, "--", "cat"}, pair...)...)
			if r.Code == 0 && want[r.Stdout] {
				return ""
			}
			said += r.Stdout + r.Stderr
		}
		return Saw(said)
	})
}

// awaitResizeCondition waits until a condition begins so; empty is no condition.
func awaitResizeCondition(w *World, kind corev1.PodConditionType, begins string) {
	w.Helper()
	w.Await(fmt.Sprintf("condition %s: %s", kind, begins), func() Answer {
		pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), "sized", metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for _, c := range pod.Status.Conditions {
			if c.Type != kind {
				continue
			}
			if text := c.Reason + ": " + c.Message; begins == "" || !strings.HasPrefix(text, begins) ||
				c.ObservedGeneration != pod.Generation {
				return Sawf("%s of generation %d, the Pod is of %d", text, c.ObservedGeneration, pod.Generation)
			}
			return ""
		}
		if begins == "" {
			return ""
		}
		return "there is none"
	})
}

// resizesThroughCrashes resizes a Pod while its nodeagent ends before and after each step: the size is reached, and
// nothing restarts but what asked for it, once.
func resizesThroughCrashes(w *World, die Die) {
	w.KubectlWith(sized, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/sized", "--timeout=60s")
	for i, failpoint := range []string{"checkpoint.save.before", "checkpoint.save.after", "cgroup.resize.before",
		"cgroup.resize.after", "container.update.before", "container.update.after",
		"cgroup.resize.after=1*off->crash"} {
		if !strings.Contains(failpoint, "=") {
			failpoint += "=crash"
		}
		memory := fmt.Sprintf("%dMi", 144+16*(i%2)) // up and down
		die(w, mesh.NodeAgent, "nodeagent/"+failpoint,
			func() { resizeContainer(w, "main", `{"limits":{"memory":"`+memory+`"}}`) })
		awaitResources(w, "main", "200m", memory, 0)
		awaitCgroupLimits(w, "main", 20000, int64(144+16*(i%2))<<20)
	}
	for i, failpoint := range []string{"container.stop.after", "container.create.before", "container.start.after"} {
		memory := fmt.Sprintf("%dMi", 144+16*(i%2))
		die(w, mesh.NodeAgent, "nodeagent/"+failpoint+"=crash", func() {
			resizeContainer(w, "restarts", `{"limits":{"memory":"`+memory+`"}}`)
		})
		awaitResources(w, "restarts", "200m", memory, int32(i)+1)
		awaitCgroupLimits(w, "restarts", 20000, int64(144+16*(i%2))<<20)
	}
}
