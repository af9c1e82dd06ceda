package podworker

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

func TestHoldReason(t *testing.T) {
	for _, r := range []struct {
		name   string
		listed bool
		others []namesake
		want   string
	}{
		{name: "nothing is known of the runtime", want: "shown what runs"},
		{name: "nor whether that is all", others: []namesake{{uid: "u1"}}, want: "shown what runs"},
		{name: "alone", listed: true},
		{name: "one that the API has", listed: true, others: []namesake{{uid: "u1"}}, want: "UID u1, which still runs"},
		{name: "one that the API has not", listed: true, others: []namesake{{uid: "u1", forgotten: true}},
			want: "UID u1, which is being ended"},
		{name: "of several always the same one", listed: true, others: []namesake{{uid: "u2"}, {uid: "u1"}},
			want: "UID u1"},
	} {
		got := holdReason(r.listed, r.others)
		if (got == "") != (r.want == "") || !strings.Contains(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

func uid(uid types.UID) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = uid } }

// slow makes containers of the Pods end only when they are killed.
func slow(w *world) { w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true}) }

// force deletes the Pod from the API without asking the node; told means that the agent hears of it.
func (w *world) force(uid types.UID, told bool) {
	w.mu.Lock()
	delete(w.pods, uid)
	w.mu.Unlock()
	if told {
		w.pool.Remove(uid)
	}
}

// neverTwo fails if at any time two containers of the Pods web run, and expects that the new one runs at the end.
func (w *world) neverTwo(within time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(within); ; w.after(100 * time.Millisecond) {
		old, new := w.runtime.Live("u1", "m"), w.runtime.Live("u2", "m")
		if old+new > 1 {
			w.t.Fatalf("at %v two run", time.Since(w.began))
		}
		if new == 1 {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("the new one does not run after %v: %+v", within, w.get("u2").Status)
		}
	}
}

// A Pod that was deleted by force and recreated under its name starts as soon as the first has stopped.
func TestForcedPodIsEndedBeforeTheNext(t *testing.T) {
	inWorld(t, func(w *world) {
		slow(w)
		w.put(newPod())
		w.after(time.Minute)
		w.force("u1", true)
		w.put(newPod(uid("u2")))
		w.after(time.Second)
		waiting := w.get("u2").Status.ContainerStatuses[0].State.Waiting
		if waiting == nil || waiting.Reason != "ContainerCreating" || !strings.Contains(waiting.Message, "UID u1") {
			t.Errorf("it waits for %+v", waiting)
		}
		w.neverTwo(time.Minute)
		w.expect("what was done", w.signals("KILL", "RunSandbox"), "RunSandbox web @0", "KILL m @62",
			"RunSandbox web @62")
		if got := logged(w, "set up"); len(got) != 4 || !strings.HasSuffix(got[2], "@62") {
			t.Errorf("it was prepared before: %v", got)
		}
	})
}

// What a Pod leaves on the node besides processes holds back no other Pod: the Pod has stopped.
func TestHeldForProcessesAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(time.Minute)
		w.mu.Lock()
		w.fail["Release volumes"] = errors.New("busy")
		w.mu.Unlock()
		w.force("u1", true)
		w.put(newPod(uid("u2")))
		w.after(0)
		if w.runtime.Live("u2", "m") != 1 {
			t.Error("it waits for what is no process")
		}
	})
}

// A paused agent hears of the new Pod before it hears that the old one is gone.
func TestPausedAgentHearsOfTheNextFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		slow(w)
		w.put(newPod())
		w.after(time.Minute)
		w.force("u1", false)
		w.put(newPod(uid("u2")))
		w.after(time.Hour)
		if w.runtime.Live("u2", "m") != 0 {
			t.Error("it runs beside the first")
		}
		w.pool.Remove("u1")
		w.neverTwo(time.Minute)
	})
}

// An agent that starts knows of the old Pod only from the runtime: the new one waits until the old one is adopted
// and has stopped, and the death of an agent in the middle of that changes nothing.
func TestHeldAcrossRestarts(t *testing.T) {
	inWorld(t, func(w *world) {
		slow(w)
		w.put(newPod())
		w.after(time.Minute)
		w.force("u1", false)
		w.start()
		w.put(newPod(uid("u2")))
		w.after(time.Minute) // not all Pods are known yet
		if w.runtime.Live("u2", "m") != 0 || len(w.signals("TERM")) != 0 {
			t.Fatalf("%d run of the new one; signals %v", w.runtime.Live("u2", "m"), w.signals("TERM"))
		}
		w.pool.Adopt("u1", "", "") // from the disk, which has no names
		w.pool.Notify("u2")
		w.after(time.Second)
		if w.runtime.Live("u2", "m") != 0 {
			t.Fatal("the next runs beside the first, of which the disk has no name")
		}
		w.start()
		w.after(time.Second)
		if w.runtime.Live("u1", "m") != 1 || w.runtime.Live("u2", "m") != 0 {
			t.Fatal("the first has ended too soon for this test, or the next has begun")
		}
		w.pool.Adopt("u1", "ns", "web")
		w.neverTwo(time.Minute)
	})
}

// Nothing starts before the runtime's containers were listed. A Pod that only the disk knows holds back no other,
// nor does one that ended while no agent looked.
func TestHeldByNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(time.Minute)
		w.force("u1", false)
		w.start()
		w.put(newPod(uid("u2")))
		w.after(time.Minute)
		if w.runtime.Live("u2", "m") != 0 {
			t.Error("it runs although the first does")
		}
		w.runtime.Exit("u1", "m", 0)
		w.runtime.LoseSandboxes("u1")
		w.list()
		w.after(0)
		if w.runtime.Live("u2", "m") != 1 {
			t.Error("it does not run although of the first nothing does")
		}
	})
	inWorld(t, func(w *world) {
		w.unlisted = true
		w.start()
		w.pool.Adopt("u1", "ns", "web")
		w.put(newPod(uid("u2")))
		w.after(time.Minute)
		if got := w.get("u2").Status.ContainerStatuses[0].State.Waiting; len(w.signals("RunSandbox")) != 0 ||
			!strings.Contains(got.Message, "shown what runs") {
			t.Errorf("begun without a list: %v, %+v", w.signals("RunSandbox"), got)
		}
		w.list()
		w.after(0)
		if w.runtime.Live("u2", "m") != 1 {
			t.Error("it does not run although everything was listed")
		}
	})
}

// A list from before a Pod ended does not hold back others forever: the Pod is adopted, and nothing of it is found.
func TestHeldByAnOldList(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pool.Listed([]observed.Pod{{UID: "u1", Namespace: "ns", Name: "web",
			Sandboxes: []observed.Sandbox{{Ready: true}}}})
		w.put(newPod(uid("u2")))
		w.after(time.Second)
		if w.runtime.Live("u2", "m") != 0 {
			t.Error("it runs although the list has the first")
		}
		w.pool.Adopt("u1", "ns", "web")
		w.after(0)
		if w.runtime.Live("u2", "m") != 1 {
			t.Error("it does not run although nothing is there of the first")
		}
	})
	inWorld(t, func(w *world) {
		w.pool.Listed([]observed.Pod{{UID: "u1", Namespace: "ns", Name: "web",
			Sandboxes: []observed.Sandbox{{Ready: true}}}})
		w.pool.Adopt("u1", "ns", "web")
		w.after(time.Second)
		w.put(newPod(uid("u2")))
		w.after(0)
		if w.runtime.Live("u2", "m") != 1 {
			t.Error("it waits for one that has gone since the list")
		}
	})
}

func noting(others *[]string) func(*corev1.Pod, []*corev1.Pod) *podstate.Outcome {
	return func(_ *corev1.Pod, pods []*corev1.Pod) *podstate.Outcome {
		for _, p := range pods {
			*others = append(*others, p.Name)
		}
		return nil
	}
}

// The node admits a Pod that needs all of its resources while the earlier Pod of the same name is still ending.
func TestAdmittedBesideItsForerunner(t *testing.T) {
	inWorld(t, func(w *world) {
		slow(w)
		var others []string
		w.pool.config.Admit = noting(&others)
		w.put(newPod())
		w.put(newPod(uid("u3"), func(p *corev1.Pod) { p.Name = "other" }))
		w.after(time.Minute)
		w.force("u1", true)
		others = nil
		w.put(newPod(uid("u2")))
		w.after(0)
		w.expect("the others", others, "other")
		w.neverTwo(time.Minute)
	})
}
