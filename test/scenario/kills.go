package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// asker is a Pod that does what it does with nobody watching: the stream of an exec would end with the nodeagent.
func asker(name, node string, command ...string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: asker}}
spec:
  nodeName: %s
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %s, command: ["%s"]}]
`, name, node, Server, strings.Join(command, `", "`))
}

// KillsUnderLoad kills every nodeagent, then CoreDNS, while Pods of every node ask a Service without a pause and hold
// a connection to it. No request to its address is lost, nor one by its name while CoreDNS lives.
func KillsUnderLoad(t *testing.T, m mesh.Mesh, killDNS func(testing.TB)) {
	w := In(t, m)
	w.KubectlWith(echoes, "apply", "-f", "-")
	all := w.startClients()
	w.AwaitAvailable("echo", 2)
	names := slices.Sorted(maps.Keys(w.addresses("app=echo")))
	w.awaitAnswers(all, names, "-n", enough, "http://echo/hostname")
	ip := w.service("echo").Spec.ClusterIP
	t.Run("nodeagent", func(t *testing.T) {
		w.on(t).underLoad(names, func() {
			m.Kill(t, mesh.NodeAgent)
			m.Start(t, mesh.NodeAgent)
		}, "echo", ip)
	})
	t.Run("coredns", func(t *testing.T) {
		w := w.on(t)
		w.underLoad(names, func() { killDNS(t) }, ip)
		w.awaitAnswers(all, names, "-n", enough, "http://echo/hostname")
	})
}

// underLoad does something while Pods ask by each of the Service's hosts, and looks at what they were told.
func (w *World) underLoad(names []string, do func(), hosts ...string) {
	w.Helper()
	w.Kubectl("delete", "pod", "-l", "app=asker")
	ip, manifest := w.service("echo").Spec.ClusterIP, ""
	for i, node := range w.Mesh.Nodes() {
		manifest += asker(fmt.Sprintf("holder-%d", i+1), node, "wget", "-q", "-T", "30", "-O-",
			"http://"+ip+"/sleep?for=20s")
		for j, host := range hosts {
			manifest += asker(fmt.Sprintf("asker-%d-%d", i+1, j+1), node, "requests", "-t", "20",
				"http://"+host+"/hostname")
		}
	}
	w.KubectlWith(manifest, "apply", "-f", "-")
	w.awaitAskers(corev1.PodRunning)
	do()
	for _, pod := range w.awaitAskers(corev1.PodSucceeded, corev1.PodFailed) {
		out := w.Kubectl("logs", pod.Name)
		if strings.HasPrefix(pod.Name, "holder-") {
			if strings.TrimSpace(out) != "slept 20s" {
				w.Errorf("%s lost its connection: %q", pod.Name, out)
			}
			continue
		}
		a := parseAnswers(out)
		w.Logf("%s: %v", pod.Name, a)
		if len(a.failed) > 0 || !slices.Equal(a.from(), names) {
			w.Errorf("%s: %v, want no failure, and answers of %v", pod.Name, a, names)
		}
	}
}

// awaitAskers waits until all asking Pods are in one of these phases.
func (w *World) awaitAskers(phases ...corev1.PodPhase) (pods []corev1.Pod) {
	w.Helper()
	w.Await(fmt.Sprintf("all askers to be %v", phases), func() string {
		pods = w.Pods("app=asker")
		for i := range pods {
			if phase := pods[i].Status.Phase; !slices.Contains(phases, phase) {
				return fmt.Sprintf("%s is %s", pods[i].Name, phase)
			}
		}
		return ""
	})
	return pods
}
