package podworker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
)

// Each instance that exits is told of once, and not again by the agent that comes next.
func TestEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		var ended []string
		tell := func(kind lifecycle.Kind, c *observed.Container) {
			ended = append(ended, fmt.Sprintf("%s %s %d", kind, c.Name, c.ExitCode))
		}
		w.pool.config.Ended = tell
		w.put(newPod())
		w.after(0)
		w.runtime.Exit("u1", "m", 3)
		w.after(time.Minute)
		w.runtime.Exit("u1", "m", 0)
		w.after(0)
		if want := []string{"Main m 3", "Main m 0"}; !slices.Equal(ended, want) {
			t.Errorf("told of %q, want %q", ended, want)
		}
		ended = nil
		w.after(time.Second)
		w.start()
		w.pool.config.Ended = tell
		w.after(0)
		if len(ended) > 0 {
			t.Errorf("the next agent tells of %q", ended)
		}
	})
}
