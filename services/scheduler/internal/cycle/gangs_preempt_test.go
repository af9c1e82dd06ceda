package cycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

var high = withPriority(10)

// A gang preempts others in one decision: all of it fits afterwards, or no Pod is evicted.
func TestGangPreempts(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "2")
	f.node("b", "2")
	f.running(pod("x", "2", onNode("a")), pod("y", "1", onNode("b")), pod("strong", "1", onNode("b"),
		withPriority(20)))
	f.SetPodGroup(gangOf("g", 4, ofPriority(10)), f.now)
	f.gang("g", 4, "1", high)
	f.fixture.want("g0:- g1:- g2:- g3:-") // three would fit without the weak ones
	if n := len(f.State().Reservations(f.State().Slot("a"))); n != 0 {
		t.Errorf("room is kept for %d Pods that do not come", n)
	}
	f.SetPodGroup(gangOf("h", 3, ofPriority(10)), f.now)
	f.gang("h", 3, "1", high)
	f.want("h0>a(x) h1:- h2>b(y)")
	if got := f.Nominated("uid-h1"); got != "a" {
		t.Errorf("room is kept for the second on %q", got)
	}
	f.wait(time.Minute)
	f.want("") // they leave, and no other victim is chosen
	f.RemovePod(f.pods["y"])
	f.add(pod("small", "1"))
	f.want("g0:- g1:- g2:- g3:- h0:- h1:- h2:- small:-") // what they leave is kept for the gang
	f.RemovePod(f.pods["x"])
	f.want("h0:a h1:a h2:b")
}

// A gang whose nodes have one zone takes room in the zone that costs least of those where enough of it fits, and in no
// two of them.
func TestGangPreemptsInOneDomain(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*preempting)
		want    string
	}{
		"the cheapest of both zones": {func(f *preempting) {
			f.running(pod("y1", "1", on("b1", 0)), pod("y2", "1", on("b2", 0)))
			f.running(pod("x1", "1", on("a1", 5)), pod("x2", "1", on("a2", 0)))
		}, "g0>b1(y1) g1>b2(y2)"},
		"the first of two alike": {func(f *preempting) {
			f.running(pod("y1", "1", on("b1", 0)), pod("y2", "1", on("b2", 0)))
			f.running(pod("x1", "1", on("a1", 0)), pod("x2", "1", on("a2", 0)))
		}, "g0>a1(x1) g1>a2(x2)"},
		"the one where both fit": {func(f *preempting) {
			f.running(pod("y1", "1", on("b1", 0)), pod("y2", "1", on("b2", 20)))
			f.running(pod("x1", "1", on("a1", 5)), pod("x2", "1", on("a2", 5)))
		}, "g0>a1(x1) g1>a2(x2)"},
		"the one with fewer victims": {func(f *preempting) {
			f.running(pod("y1", "1", on("b1", 0)))
			f.running(pod("x1", "1", on("a1", 0)), pod("x2", "1", on("a2", 0)))
		}, "g0:- g1>b1(y1)"},
		"none where one fits in each": {func(f *preempting) {
			f.running(pod("y1", "1", on("b1", 0)), pod("y2", "1", on("b2", 20)))
			f.running(pod("x1", "1", on("a1", 0)), pod("x2", "1", on("a2", 20)))
		}, "g0:- g1:-"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			for _, node := range []string{"a1", "a2", "b1", "b2"} {
				f.node(node, "1", zoneOf(node[:1]))
			}
			test.happens(f)
			f.SetPodGroup(gangOf("g", 2, ofPriority(10), inOne(corev1.LabelTopologyZone)), f.now)
			f.gang("g", 2, "1", high)
			before := columnsOf(f.State())
			f.want(test.want)
			if !strings.Contains(test.want, ">") {
				if after := columnsOf(f.State()); after != before {
					t.Errorf("refused it leaves\n%s\nwhere it was\n%s", after, before)
				}
				return
			}
			zones := map[byte]bool{f.Nominated("uid-g0")[0]: true, f.Nominated("uid-g1")[0]: true}
			if len(zones) != 1 {
				t.Errorf("nominated in zones %v", zones)
			}
			for _, p := range f.pods {
				if p.DeletionTimestamp != nil {
					f.RemovePod(p)
				}
			}
			f.wait(time.Minute)
			if got := f.place(); len(got) != 2 || got["g0"][0] != got["g1"][0] {
				t.Errorf("with the victims gone they are on %v", got)
			}
		})
	}
}

// evicting is a fixture with a gang of two, least of which are needed, for both of which room is being made.
func evicting(t *testing.T, least int32) *preempting {
	f := newPreempting(t)
	f.node("a", "1")
	f.node("b", "1")
	f.running(pod("x", "1", onNode("a")), pod("y", "1", onNode("b")))
	f.SetPodGroup(gangOf("g", least, ofPriority(10)), f.now)
	f.gang("g", 2, "1", high)
	f.fixture.want("g0:- g1:-")
	return f
}

// A gang whose victims go before the evictions are answered is tried when they are, and not before.
func TestGangAwaitsTheAnswersToItsEvictions(t *testing.T) {
	f := evicting(t, 2)
	f.end("x", "y")
	f.want("")
	f.Evicted("uid-g0", nil, nil, f.now)
	f.want("")
	f.Evicted("uid-g1", nil, nil, f.now)
	f.want("g0:a g1:b")
}

// A gang that was tried in vain while room was made for one of its Pods is tried when that Pod is gone.
func TestGangGoesOnWithoutThePodThatEvicts(t *testing.T) {
	f := evicting(t, 1)
	f.Evicted("uid-g0", nil, nil, f.now)
	f.end("x")
	f.wait(time.Minute)
	f.want("")
	f.RemovePod(pod("g1", "1"))
	f.want("g0:a")
}

// A gang of Pods that preempt no Pod waits, and so does one that finds no Pod of lower priority.
func TestGangThatPreemptsNobody(t *testing.T) {
	never := corev1.PreemptNever
	f := newPreempting(t)
	f.node("a", "1", zoneOf("z"))
	f.running(pod("x", "1", onNode("a")))
	f.SetPodGroup(gangOf("g", 1, ofPriority(10)), f.now)
	f.gang("g", 1, "1", high, func(p *corev1.Pod) { p.Spec.PreemptionPolicy = &never })
	f.SetPodGroup(gangOf("i", 1), f.now)
	f.gang("i", 1, "1") // of the priority of the one that runs
	f.want("g0:- i0:-")
	f.SetPodGroup(gangOf("j", 1, ofPriority(10)), f.now)
	f.gang("j", 1, "1", high)
	f.want("j0>a(x)")
}

// Pods of a group that is disrupted as a whole are evicted together or not at all, whichever Pod needs their room.
func TestGroupIsEvictedTogether(t *testing.T) {
	for _, row := range []struct {
		name, want string
		priority   int32
		alone      bool
	}{
		{"for a Pod", "p>a(v0 v1)", 5, true},
		{"for a gang", "g0>a(v0 v1)", 5, false},
		{"not for a Pod", "p:-", 10, true},
		{"not for a gang", "g0:-", 10, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newPreempting(t)
			f.node("a", "1")
			f.node("b", "1")
			f.SetPodGroup(gangOf("v", 2, together, ofPriority(row.priority)), f.now)
			weak := withPriority(5)
			f.running(pod("v0", "1", weak, inGroup("v"), onNode("a")),
				pod("v1", "1", withPriority(row.priority), inGroup("v"), onNode("b")))
			f.said()
			if row.alone {
				f.add(pod("p", "1", high))
			} else {
				f.SetPodGroup(gangOf("g", 1, ofPriority(10)), f.now)
				f.gang("g", 1, "1", high)
			}
			f.want(row.want)
			said := f.said()
			if strings.Contains(said, "DisruptionTarget=True PreemptionByScheduler") != (row.priority < 10) {
				t.Errorf("the groups say %q", said)
			}
		})
	}
}

// Two Pods of a gang that want one claim for one Pod are refused. What was tried for them is no reason to try again.
func TestGangOfOneClaimWaits(t *testing.T) {
	f := newFixture(t)
	f.node("a", "4")
	f.having([]string{"v"})
	claim := waiting("v", single)
	claim.Spec.VolumeName, claim.Annotations = "pv-v", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	f.SetClaim(claim)
	f.SetPodGroup(gangOf("g", 2), f.now)
	f.gang("g", 2, "1", claiming("v"))
	for i := range 2 {
		if v, ok := f.Next(f.now); !ok || v.Node != "" {
			t.Fatalf("try %d: got %v, node %q", i, ok, v.Node)
		}
	}
	f.Next(f.now)
	f.wait(time.Minute) // longer than its delay
	if v, ok := f.Next(f.now); ok {
		t.Errorf("pod %s is tried again though nothing happened: %s", v.Pod.Name, v.Message())
	}
	e, _ := f.ExplainGroup(types.NamespacedName{Namespace: "default", Name: "g"})
	if said := fmt.Sprintf("%+v", e.Facts); strings.Count(said, "alone would fit on 1 of 1 nodes") != 2 {
		t.Errorf("what was tried has left its trace: %s", said)
	}
}

// While Pods leave for a gang, each that is gone is no reason to try the gang again before all of it fits.
func TestGangAwaitsAllItsVictims(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "2")
	f.running(pod("x", "1", onNode("a")), pod("y", "1", onNode("a")))
	f.SetPodGroup(gangOf("g", 2, ofPriority(10)), f.now)
	f.gang("g", 2, "1", high)
	f.want("g0>a(y) g1>a(x)")
	f.RemovePod(f.pods["x"])
	f.want("")
	f.RemovePod(f.pods["y"])
	f.want("g0:a g1:a")
}

// A gang takes room that is kept for a Pod of lower priority: where all of it fits then, and else nothing of it.
func TestGangOutranksNominees(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "1", zoneOf("z"))
	f.node("b", "1")
	f.running(pod("x", "1", onNode("a")), pod("y", "1", onNode("b"), withPriority(20)))
	f.add(pod("low", "1", withPriority(5)))
	f.want("low>a(x)")
	f.RemovePod(f.pods["x"])
	before := columnsOf(f.State())
	f.SetPodGroup(gangOf("g", 2, ofPriority(10)), f.now)
	f.gang("g", 2, "1", high)
	v, ok := f.Next(f.now)
	if !ok || v.Node != "" || f.Nominated("uid-low") != "a" || columnsOf(f.State()) != before {
		t.Fatalf("%v %q: room for low is on %q", ok, v.Node, f.Nominated("uid-low"))
	}
	f.want("g1:- low:a")
	f.RemovePod(pod("low", "1", onNode("a")))
	f.running(pod("x", "1", onNode("a")))
	f.add(pod("low2", "1", withPriority(5)))
	f.want("low2>a(x)")
	f.RemovePod(f.pods["x"])
	f.SetPodGroup(gangOf("h", 1, ofPriority(10), inOne(corev1.LabelTopologyZone)), f.now)
	f.gang("h", 1, "1", high)
	f.want("h0:a low2:-")
	if got := f.Nominated("uid-low2"); got != "" {
		t.Errorf("room is kept on %q for whom a gang displaced", got)
	}
}

// A gang outranks those of lower priority alone: who has its priority keeps the room beside them.
func TestGangOutranksNoEqual(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "4", func(n *corev1.Node) { n.Labels["at"] = "a" })
	f.node("b", "1", func(n *corev1.Node) { n.Labels["at"] = "b" })
	f.running(pod("x", "2", on("a", 0)), pod("y", "1", on("b", 0)))
	f.SetPodGroup(gangOf("h", 2, ofPriority(10)), f.now)
	f.add(pod("h0", "1", high, inGroup("h"), at("a")), pod("h1", "1", high, inGroup("h"), at("b")))
	f.want("h0:- h1>b(y)")
	f.add(pod("low", "3", withPriority(5), at("a")))
	f.want("low>a(x)")
	f.SetPodGroup(gangOf("g", 1, ofPriority(10)), f.now)
	f.add(pod("g0", "1", high, inGroup("g"), at("a")))
	f.want("g0:a low:-")
	if equal, lower := f.Nominated("uid-h0"), f.Nominated("uid-low"); equal != "a" || lower != "" {
		t.Errorf("room is kept for the equal on %q and for the lower on %q", equal, lower)
	}
}

// A Pod that a gang displaces while its victims still leave looks for another node at once.
func TestWhomAGangDisplacesIsTriedAgain(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "2")
	f.running(pod("x", "1", onNode("a")), pod("y", "1", onNode("a")))
	f.add(pod("low", "2", withPriority(5)))
	f.want("low>a(x y)")
	f.RemovePod(f.pods["x"])
	f.SetPodGroup(gangOf("g", 1, ofPriority(10)), f.now)
	f.gang("g", 1, "1", high)
	f.want("g0:a low:-")
}

// A gang that loses one of its nodes to a Pod of higher priority gives up the others, and looks for victims again.
func TestGangLosesAPlace(t *testing.T) {
	f := newPreempting(t)
	for _, node := range []string{"a", "b", "c"} {
		f.node(node, "1")
	}
	f.running(pod("x", "1", onNode("a")), pod("y", "1", onNode("b")), pod("z", "1", onNode("c"), withPriority(5)))
	f.SetPodGroup(gangOf("g", 2, ofPriority(10)), f.now)
	f.gang("g", 2, "1", high)
	f.want("g0>a(x) g1>b(y)")
	f.RemovePod(f.pods["x"])
	f.add(pod("top", "1", withPriority(20)))
	f.want("top:a g0:- g1>c(z)")
	if a, b := f.Nominated("uid-g0"), f.Nominated("uid-g1"); a != "b" || b != "c" {
		t.Errorf("room is kept on %q and %q", a, b)
	}
	f.RemovePod(f.pods["y"])
	f.node("d", "1")
	f.add(pod("top2", "1", withPriority(20)), pod("top3", "1", withPriority(20)))
	f.want("top2:d top3:b g0:- g1:-") // no victims are left whose room makes all of it fit
	f.add(pod("low", "1", withPriority(1)))
	f.RemovePod(f.pods["z"])
	f.want("low:c")
}

// No room is kept for a gang that lacks Pods: one was deleted, or the PodGroup asks for more or is gone.
func TestGangThatShrinksKeepsNoRoom(t *testing.T) {
	for name, happens := range map[string]func(*preempting){
		"a Pod is gone":        func(f *preempting) { f.RemovePod(pod("g1", "1", inGroup("g"))) },
		"a Pod with a node is": func(f *preempting) { f.RemovePod(pod("g2", "1", inGroup("g"), onNode("c"))) },
		"a Pod with a node leaves": func(f *preempting) {
			f.SetPod(leaving(pod("g2", "1", inGroup("g"), onNode("c"))),
				f.now)
		},
		"it asks for more":  func(f *preempting) { f.SetPodGroup(gangOf("g", 4, ofPriority(10)), f.now) },
		"the group is gone": func(f *preempting) { f.RemovePodGroup(gangOf("g", 3)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			for _, node := range []string{"a", "b", "c"} {
				f.node(node, "1")
			}
			f.running(pod("x", "1", onNode("a")), pod("y", "1", onNode("b")),
				pod("g2", "1", high, inGroup("g"), onNode("c")))
			f.SetPodGroup(gangOf("g", 3, ofPriority(10)), f.now)
			f.gang("g", 2, "1", high)
			f.want("g0>a(x) g1>b(y)")
			happens(f)
			for _, node := range []string{"a", "b"} {
				if n := len(f.State().Reservations(f.State().Slot(node))); n != 0 {
					t.Errorf("room is kept for %d Pods on node %s", n, node)
				}
			}
			v, ok := f.Next(f.now)
			if !ok || v.Nominated != "" || !strings.HasPrefix(v.Message(), "waits for pod group g to ") {
				t.Errorf("the first Pod says %v %q, nominated %q", ok, v.Message(), v.Nominated)
			}
		})
	}
}

// A gang whose victims could not be evicted is tried again after a delay.
func TestGangWhoseEvictionFails(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "1")
	f.running(pod("x", "1", onNode("a")))
	f.SetPodGroup(gangOf("g", 1, ofPriority(10)), f.now)
	f.gang("g", 1, "1", high)
	v, ok := f.Next(f.now)
	if !ok || v.Plan == nil {
		t.Fatalf("got %+v", v)
	}
	f.want("")
	f.Evicted(v.Pod.UID, []types.UID{"uid-x"}, errors.New("no"), f.now)
	f.counted()
	f.want("")
	f.wait(2 * time.Second)
	f.want("g0>a(x)")
}
