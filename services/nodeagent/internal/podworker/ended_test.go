package podworker

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Each instance that exits is reported once, and not again by the next agent.
func TestEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(0)
		w.runtime.Exit("u1", "m", 3)
		w.after(time.Minute)
		w.runtime.Exit("u1", "m", 0)
		w.after(0)
		if want := []string{"Main m 3", "Main m 0"}; !slices.Equal(w.ended, want) {
			t.Errorf("told of %q, want %q", w.ended, want)
		}
		w.ended = nil
		w.after(time.Second)
		w.start()
		w.after(0)
		if len(w.ended) > 0 {
			t.Errorf("the next agent tells of %q", w.ended)
		}
	})
}

// Stopped is called once when no process of a Pod is left, and not while one runs.
func TestStoppedIsTold(t *testing.T) {
	inWorld(t, func(w *world) {
		var told atomic.Int32
		w.pool.config.Stopped = func(uid types.UID) {
			if uid == "u1" {
				told.Add(1)
			}
		}
		w.put(newPod(func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))
		w.after(time.Minute)
		if told.Load() != 0 {
			t.Error("a Pod that runs has stopped")
		}
		w.runtime.Exit("u1", "m", 0)
		w.after(time.Minute)
		if n := told.Load(); n != 1 {
			t.Errorf("told %d times of a Pod that has ended", n)
		}
	})
}
