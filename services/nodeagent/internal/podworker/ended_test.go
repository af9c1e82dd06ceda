package podworker

import (
	"slices"
	"testing"
	"time"
)

// Each instance that exits is told of once, and not again by the agent that comes next.
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
