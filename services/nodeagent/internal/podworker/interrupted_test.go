package podworker

import (
	"testing"
	"time"

	"keelson.dev/services/nodeagent/internal/observed"
)

// An interrupted start, whose instance the runtime lists as created or exited, has left a process that the runtime
// does not know: the next agent calls the runtime once, then ends the process without it, and starts or ends the
// Pod as usual.
func TestWhatAnInterruptedStartLeavesIsEnded(t *testing.T) {
	for _, state := range []observed.ContainerState{observed.Created, observed.Exited} {
		for _, deleted := range []bool{false, true} {
			inWorld(t, func(w *world) {
				w.put(newPod())
				w.after(0)
				w.runtime.Interrupt("u1", "m", state)
				if deleted {
					w.delete("u1", 1)
				}
				w.start()
				w.after(30 * time.Second)
				// The removals of a container and of its sandbox may both have to end it.
				if got := w.signals("kill"); len(got) < 1 || len(got) > 2 {
					t.Errorf("%s, deleted %v: killed without the runtime: %v", state, deleted, got)
				}
				if deleted && w.get("u1") != nil {
					t.Errorf("%s: the Pod is still there after 30 s", state)
				}
				if !deleted && w.runtime.Live("u1", "m") != 1 {
					t.Errorf("%s: %d instances run after 30 s", state, w.runtime.Live("u1", "m"))
				}
			})
		}
	}
}
