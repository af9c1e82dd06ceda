package podworker

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

func sidecars(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			p.Spec.InitContainers = append(p.Spec.InitContainers,
				corev1.Container{Name: name, Image: "image:1",
					RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
		}
	}
}

// POD-243 POD-244
func TestSidecarsStopLast(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{StopTakes: 2 * time.Second})
		w.put(newPod(sidecars("s", "t")))
		w.after(0)
		// POD-236
		w.expect("order of starts", w.signals("StartContainer"), "StartContainer s @0", "StartContainer t @0",
			"StartContainer m @0")
		w.delete("u1", 30)
		w.after(time.Minute)
		w.expect("signals", w.signals("TERM", "KILL"), "TERM m @0", "TERM t @2", "TERM s @4")
	})
}

// POD-246: a main container that does not end leaves its sidecars only the minimum grace period.
func TestSidecarsLoseTheirTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod(sidecars("s")))
		w.after(0)
		w.delete("u1", 30)
		w.after(time.Minute)
		w.expect("signals", w.signals("TERM"), "TERM m @0", "TERM s @30")
		w.expect("kills", w.signals("KILL"), "KILL m @30", "KILL s @32")
		if w.get("u1") != nil {
			t.Error("the object is still there")
		}
	})
}

// POD-194: main containers start when an init container that takes a minute has ended, and not before.
func TestInitContainerDelays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("sleep:60", fake.Behavior{RunFor: time.Minute})
		w.put(newPod(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "sleep:60"}}
		}))
		w.after(2 * time.Minute)
		w.expect("starts", w.signals("StartContainer"), "StartContainer i @0", "StartContainer m @60")
	})
}
