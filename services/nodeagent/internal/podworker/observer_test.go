package podworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

func (w observerOf) told(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, fmt.Sprintf(format, args...))
}

func (w observerOf) Taken(waited time.Duration) { w.told("taken after %s", waited) }

func (w observerOf) Running(took time.Duration) { w.told("running after %s", took) }

func (w observerOf) Synced(kind Sync, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.synced == nil {
		w.synced = map[Sync]time.Duration{}
	}
	w.synced[kind] += took
}

func (w observerOf) SandboxStarted(err error) { w.told("sandbox: %v", err) }

func (w observerOf) ContainerStarted(kind lifecycle.Kind, reason string) {
	w.told("%s: %q", kind, reason)
}

func (w observerOf) Ended(kind lifecycle.Kind, c *observed.Container) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, fmt.Sprintf("%s %s %d", kind, c.Name, c.ExitCode))
}

// An observer hears how a Pod fares: how long it took to run, each attempt to start something of it, and what kept
// its worker busy for how long, from the first thing to do to the last.
func TestObserver(t *testing.T) {
	inWorld(t, func(w *world) {
		// Several goroutines report at the same moment: their order says nothing, nor whether an operation that ends
		// while the next begins ends a sync.
		heard := func(what string, want ...string) {
			t.Helper()
			w.mu.Lock()
			got := w.seen
			for kind, took := range w.synced {
				got = append(got, fmt.Sprintf("%s took %s", kind, took))
			}
			w.seen, w.synced = nil, nil
			w.mu.Unlock()
			slices.Sort(got)
			slices.Sort(want)
			w.expect(what, got, want...)
		}
		w.mu.Lock()
		w.fail["Container"] = errors.New("no such secret")
		w.mu.Unlock()
		w.hook = func(ctx context.Context, _ string) error {
			select {
			case <-time.After(7 * time.Second):
			case <-ctx.Done():
			}
			return nil
		}
		w.put(newPod(func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}
		}))
		w.after(0)
		heard("a container that cannot be made", "taken after 0s", "sandbox: <nil>",
			`Main: "CreateContainerConfigError"`, "create took 0s")
		w.mu.Lock()
		delete(w.fail, "Container")
		w.mu.Unlock()
		w.after(10 * time.Second)
		heard("it runs at the next try", `Main: ""`, "sync took 0s", "running after 1s")
		w.runtime.Exit("u1", "m", 3)
		w.after(0)
		heard("it is started again", `Main: ""`, "sync took 0s")
		w.put(withGeneration(w.get("u1"), 2))
		w.after(0)
		heard("its volumes are looked at for a change", "update took 0s")
		w.delete("u1", 30)
		w.after(time.Minute)
		heard("it is ended", "kill took 7s")
		w.start()
		w.after(time.Minute)
		heard("the next agent has nothing of it")
	})
}

// Each sync is of one kind; the end of a Pod takes precedence, then a new Pod, then its changes.
func TestDecideSync(t *testing.T) {
	for _, row := range []struct {
		goal             podstate.Goal
		fresh            bool
		generation, seen int64
		want             Sync
	}{
		{podstate.Run, true, 1, 1, SyncCreate}, {podstate.Run, true, 2, 1, SyncCreate},
		{podstate.Run, false, 2, 1, SyncUpdate}, {podstate.Run, false, 2, 2, SyncSync},
		{podstate.Terminate, true, 2, 1, SyncKill}, {podstate.Finish, false, 2, 2, SyncKill},
	} {
		if got := decideSync(row.goal, row.fresh, row.generation, row.seen); got != row.want {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

func withGeneration(pod *corev1.Pod, generation int64) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Generation = generation
	return pod
}
