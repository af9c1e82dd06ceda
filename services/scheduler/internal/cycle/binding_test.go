package cycle_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// POD-025, POD-026, SAF-121: the Cycle does not decide again on a Pod that has a node, and never on one seen bound.
func TestPodIsPlacedOnce(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	f.node("b", "1")
	f.add(pod("p", "1"))
	placed := f.run()
	f.add(pod("p", "1", func(p *corev1.Pod) { p.ResourceVersion = "2" })) // the API does not show the binding yet
	f.wait(time.Hour)
	f.want("")
	bound := pod("p", "1", onNode(strings.TrimPrefix(placed, "p:")))
	f.add(bound)
	f.Failed(bound.UID, f.now) // the answer to the binding was lost
	f.wait(time.Hour)
	f.want("")
	if at, ok := f.State().PodNode(bound.UID); !ok || "p:"+at != placed {
		t.Errorf("the Pod counts on %q, want %s", at, placed)
	}
	f.add(pod("p", "1")) // an event from before the binding
	f.want("")
}

// SAF-121: what rules read of a Pod changes while its binding is in flight: it is not given a second node. When the
// binding fails, it is judged by what it is by then.
func TestPodChangesWhileItsBindingIsInFlight(t *testing.T) {
	tainted := rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		later  func(*fixture) // nodes that come while the binding is in flight
		want   string
	}{
		"tolerates more": {rulestest.Tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}),
			func(f *fixture) { f.node("tainted", "2", tainted) }, "p:tainted"},
		"selects nodes": {rulestest.Selecting("disk", "ssd"), func(f *fixture) {
			f.node("large", "8")
			f.node("labelled", "2", rulestest.Labelled("disk", "ssd"))
		}, "p:labelled"},
		"is gated": {func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} },
			func(f *fixture) { f.node("large", "8") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("first", "1")
			f.add(pod("p", "1"))
			f.want("p:first")
			test.later(f)
			f.add(pod("p", "1", test.change))
			f.wait(time.Hour)
			f.want("")
			if at, ok := f.State().PodNode("uid-p"); !ok || at != "first" {
				t.Errorf("the Pod counts on %q, want first", at)
			}
			f.RemoveNode("first")
			f.Failed("uid-p", f.now)
			f.wait(time.Second)
			f.want(test.want)
		})
	}
}

// POD-029, SAF-125: a Pod stays where it was bound, also when its node goes before it has started.
func TestBoundPodIsNeverMoved(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	f.add(pod("p", "1"))
	f.want("p:a")
	f.add(pod("p", "1", onNode("a")))
	f.RemoveNode("a")
	f.node("b", "2")
	f.wait(time.Hour)
	f.want("")
	f.add(pod("q", "1", onNode("a"))) // bound before this scheduler began
	f.want("")
}

// A Pod that another client bound elsewhere counts there.
func TestBoundElsewhere(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	f.add(pod("p", "1"))
	f.want("p:a")
	f.node("b", "1")
	f.add(pod("p", "1", onNode("b")), pod("q", "1"))
	f.want("q:a")
}

// A Pod that is deleted while its binding is under way gives its room back.
func TestDeletedInFlight(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	p := pod("p", "1")
	f.add(p)
	f.want("p:n")
	f.RemovePod(p)
	f.add(pod("q", "1"))
	f.want("q:n")
	f.Failed(p.UID, f.now)
	f.wait(time.Hour)
	f.want("")
}

// The failure of a binding that the Cycle did not request changes nothing.
func TestFailureOfAPodWithoutANodeIsIgnored(t *testing.T) {
	f := newFixture(t)
	f.add(pod("p", "1"))
	f.want("p:-")
	f.Failed("uid-p", f.now)
	f.Failed("uid-none", f.now)
	if d := f.Depths(); d[queue.Unschedulable].Pods != 1 || d[queue.Backoff].Pods != 0 {
		t.Errorf("depths are %v", d)
	}
}

// A phase or a deletion of a Pod that has its node, and of one that has not.
func TestWhatTakesRoom(t *testing.T) {
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	for name, test := range map[string]struct {
		change []func(*corev1.Pod)
		takes  bool
	}{
		"runs":                      {[]func(*corev1.Pod){onNode("n"), phase(corev1.PodRunning)}, true},
		"is being deleted":          {[]func(*corev1.Pod){onNode("n"), terminating}, true},
		"succeeded":                 {[]func(*corev1.Pod){onNode("n"), phase(corev1.PodSucceeded)}, false},
		"failed":                    {[]func(*corev1.Pod){onNode("n"), phase(corev1.PodFailed)}, false},
		"failed, without a node":    {[]func(*corev1.Pod){phase(corev1.PodFailed)}, false},
		"succeeded, without a node": {[]func(*corev1.Pod){phase(corev1.PodSucceeded)}, false},
		"deleted, without a node":   {[]func(*corev1.Pod){terminating}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "4")
			f.add(pod("p", "1"), pod("p", "1", test.change...))
			f.want("")
			if _, takes := f.State().PodNode("uid-p"); takes != test.takes {
				t.Errorf("takes room: %v, want %v", takes, test.takes)
			}
		})
	}
}

// SAF-024, SAF-125: a Pod that has its node is left there, whatever better place comes, and whatever the node turns
// into.
func TestBoundPodsAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	f.add(pod("a", "1", onNode("n")), pod("b", "1", onNode("n"), withPriority(10)))
	f.node("empty", "64")
	f.want("")
	f.node("n", "1", rulestest.Cordoned, rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}))
	f.wait(time.Hour)
	f.add(pod("b", "1", onNode("n"), withPriority(10), func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }))
	f.want("")
}
