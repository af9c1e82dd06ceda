package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// crasher ends with status 3 as soon as it has started.
const crasher = `apiVersion: v1
kind: Pod
metadata: {name: crasher}
spec:
  containers:
  - name: main
    image: ` + Server + `
    args: ["-exit-after=1ms", "-exit-code=3"]
`

// CrashLoopBackOff lets a container fail again and again: the first restart comes at once, then after 10 s and 20 s,
// and the Pod says in between that it waits, why, and for how long. That none comes later is held in the nodeagent's
// tests, where time does not depend on the machine.
//
// POD-093 POD-099 POD-100 POD-101 POD-104
func CrashLoopBackOff(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	watcher, err := w.Client.CoreV1().Pods(w.Namespace).Watch(w.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=crasher"})
	if err != nil {
		t.Fatalf("watching the Pod: %v", err)
	}
	defer watcher.Stop()
	w.KubectlWith(crasher, "apply", "-f", "-")

	seen := runs{}
	waits := map[string]bool{}
	deadline := time.After(patience)
	for len(seen) < 4 {
		select {
		case event := <-watcher.ResultChan():
			if pod, ok := event.Object.(*corev1.Pod); ok {
				seen.take(pod)
				takeWaits(pod, waits)
			}
		case <-deadline:
			t.Fatalf("no third restart in %v: %+v", patience, seen.inOrder())
		}
	}
	order := seen.inOrder()
	for i, delay := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
		took := order[i+1].begun.Sub(order[i].ended)
		// The runtime's times are whole seconds in the API.
		if took < delay-time.Second {
			t.Errorf("restart %d came after %v, want %v or more: %+v", i+1, took, delay, order)
		}
	}
	for _, want := range []string{"CrashLoopBackOff: back-off 10s restarting failed container",
		"CrashLoopBackOff: back-off 20s restarting failed container"} {
		if !contains(waits, want) {
			t.Errorf("no status said %q, only %v", want, waits)
		}
	}
	if got := w.Kubectl("get", "pod", "crasher", "--no-headers"); !strings.Contains(got, "3 (") &&
		!strings.Contains(got, " 3 ") {
		t.Errorf("RESTARTS of %q", got)
	}
}

// run is one instance of a container. Its end is zero as long as it runs.
type run struct{ begun, ended time.Time }

// runs are the instances that ran, by their IDs: a container that is created and not started has its place in the
// status, and the restart count of the run to come, beside how the run before it ended.
type runs map[string]run

func (r runs) take(pod *corev1.Pod) {
	for _, c := range pod.Status.ContainerStatuses {
		for _, end := range []*corev1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if end != nil {
				r[end.ContainerID] = run{begun: end.StartedAt.Time, ended: end.FinishedAt.Time}
			}
		}
		if c.State.Running != nil {
			r[c.ContainerID] = run{begun: c.State.Running.StartedAt.Time}
		}
	}
}

// inOrder sorts by begin. Of two that began within one second, the API's unit, the first to end is first.
func (r runs) inOrder() []run {
	return slices.SortedFunc(maps.Values(r), func(a, b run) int {
		return cmp.Or(a.begun.Compare(b.begun), a.ended.Compare(b.ended))
	})
}

func takeWaits(pod *corev1.Pod, waits map[string]bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			waits[fmt.Sprintf("%s: %s", c.State.Waiting.Reason, c.State.Waiting.Message)] = true
		}
	}
}

func contains(set map[string]bool, prefix string) bool {
	for text := range set {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
