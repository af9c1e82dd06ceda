package podworker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/steps"
)

func (w *world) failStep(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail[what] = err
}

// Steps are set up in order and taken down in reverse. A step that fails waits its own back-off (1 s, 2 s, 4 s) and
// delays the later ones; the earlier ones are not repeated.
func TestPreparation(t *testing.T) {
	inWorld(t, func(w *world) {
		w.failStep("Prepare volumes", errors.New("not there"))
		w.put(newPod())
		w.after(4 * time.Second)
		w.expect("set up", logged(w, "set up"), "set up folders @0", "set up volumes @0", "set up volumes @1",
			"set up volumes @3")
		w.expect("calls", w.signals("RunSandbox"))
		w.failStep("Prepare volumes", nil)
		w.after(6 * time.Second)
		w.expect("calls", w.signals("RunSandbox"), "RunSandbox web @7")
		w.failStep("Release folders", errors.New("busy"))
		w.delete("u1", 0)
		w.after(2 * time.Second)
		if w.get("u1") == nil {
			t.Error("the object went before the last step was taken down")
		}
		w.failStep("Release folders", nil)
		w.after(time.Minute)
		w.expect("taken down", logged(w, "take down"),
			"take down volumes @10", "take down folders @10", "take down folders @11", "take down folders @13")
		if w.get("u1") != nil {
			t.Error("the object is still there")
		}
	})
}

// SAF-120: a change that comes while a step is being refreshed is not lost.
func TestRefreshDuringRefresh(t *testing.T) {
	inWorld(t, func(w *world) {
		ran := 0
		w.pool.config.Preparation = []steps.Step{{
			Name: "folders", SetUp: func(ctx context.Context, _ *corev1.Pod) (time.Time, error) {
				w.mu.Lock()
				ran++
				w.mu.Unlock()
				<-time.After(5 * time.Second)
				return time.Time{}, ctx.Err()
			},
			TearDown: func(context.Context, *corev1.Pod) error { return nil },
		}}
		w.pool.steps = []string{"folders"}
		w.put(newPod())
		w.after(10 * time.Second)
		for range 2 {
			w.pool.Refresh("u1")
			w.after(time.Second)
		}
		w.after(time.Minute)
		if ran != 3 {
			t.Errorf("set up %d times, want once for the Pod and once for each change", ran)
		}
	})
}

// Views show operations in the familiar form.
func TestOperationsShow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.failStep("Prepare volumes", errors.New("not there"))
		w.put(newPod())
		w.after(time.Second / 2)
		view, ok := w.pool.View("ns", "web")
		if fault := view.Faults[podstate.Key{Kind: podstate.Prepare, Object: "volumes"}]; !ok || fault.Count != 1 ||
			len(view.Ops) != 0 {
			t.Errorf("faults %v, operations %v", view.Faults, view.Ops)
		}
		for key := range view.Faults {
			if key.String() != "prepare/volumes" {
				t.Errorf("the operation shows as %q", key)
			}
		}
		if events := logged(w, "event FailedMount"); len(events) != 1 || !strings.Contains(events[0], "not there") {
			t.Errorf("events %q", events)
		}
	})
}
