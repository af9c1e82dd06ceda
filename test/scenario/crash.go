package scenario

import (
	"fmt"
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

// slack is how much later than its delay a restart may come on a busy machine; a later one would pass as the next
// delay.
const slack = 8 * time.Second

// CrashLoop lets a container fail again and again: the first restart comes at once, then after 10 s and 20 s, and the
// Pod says in between that it waits, why, and for how long.
//
// POD-093 POD-099 POD-100 POD-101 POD-104
func CrashLoop(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	watcher, err := w.Client.CoreV1().Pods(w.Namespace).Watch(w.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=crasher"})
	if err != nil {
		t.Fatalf("watching the Pod: %v", err)
	}
	defer watcher.Stop()
	w.KubectlWith(crasher, "apply", "-f", "-")

	ended := map[int32]time.Time{} // by restart count: when that run ended
	begun := map[int32]time.Time{}
	waits := map[string]bool{}
	deadline := time.After(patience)
	for begun[3].IsZero() {
		select {
		case event := <-watcher.ResultChan():
			if pod, ok := event.Object.(*corev1.Pod); ok {
				note(pod, begun, ended, waits)
			}
		case <-deadline:
			t.Fatalf("no third restart in %v: begun %v", patience, begun)
		}
	}
	for restart, delay := range map[int32]time.Duration{1: 0, 2: 10 * time.Second, 3: 20 * time.Second} {
		took := begun[restart].Sub(ended[restart-1])
		// The runtime's times are whole seconds in the API.
		if took < delay-time.Second || took > delay+slack {
			t.Errorf("restart %d came after %v, want %v", restart, took, delay)
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

// note records the times of one status.
func note(pod *corev1.Pod, begun, ended map[int32]time.Time, waits map[string]bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			waits[fmt.Sprintf("%s: %s", c.State.Waiting.Reason, c.State.Waiting.Message)] = true
		}
		if c.State.Running != nil {
			begun[c.RestartCount] = c.State.Running.StartedAt.Time
		}
		for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if end == nil || end.ExitCode != 3 {
				continue
			}
			run := c.RestartCount
			if end == c.LastTerminationState.Terminated && c.State.Waiting == nil {
				run--
			}
			begun[run], ended[run] = end.StartedAt.Time, end.FinishedAt.Time
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
