package podworker

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

func crowd(n int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = nil
		for i := range n {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i),
				Image: "image:1"})
		}
	}
}

// POD-164: of a Pod of 60 containers, at most 8 are sent a signal within half a second, a rate that a shim keeps up
// with; all get it soon, each at least two seconds before it is killed, and the status shows each end while others
// still run.
func TestManyContainersAreStoppedInTurns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod(crowd(60)))
		w.after(0)
		w.delete("u1", 1)
		w.after(5200 * time.Millisecond)
		pod := w.get("u1")
		if pod == nil {
			t.Fatal("all containers had ended at once")
		}
		ended := 0
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Terminated != nil && !s.Ready {
				ended++
			}
		}
		if ended < 10 || ended > 59 {
			t.Errorf("after five seconds the status tells of %d ends", ended)
		}
		w.after(10 * time.Second)
		if w.get("u1") != nil {
			t.Error("the Pod is still there after 15 s")
		}
		signalled, killed := map[string]time.Time{}, map[string]time.Time{}
		for _, c := range w.runtime.Calls() {
			switch c.Verb {
			case "TERM":
				signalled[c.Object] = c.At
			case "KILL":
				killed[c.Object] = c.At
			}
		}
		if len(signalled) != 60 || len(killed) != 60 {
			t.Fatalf("%d signalled, %d killed", len(signalled), len(killed))
		}
		for name, at := range signalled {
			near := 0
			for _, other := range signalled {
				if d := other.Sub(at); d >= 0 && d < 500*time.Millisecond {
					near++
				}
			}
			if near > 8 {
				t.Errorf("%d containers were signalled within half a second", near)
			}
			if killed[name].Sub(at) < 2*time.Second {
				t.Errorf("%s was killed %s after the signal", name, killed[name].Sub(at))
			}
		}
	})
}
