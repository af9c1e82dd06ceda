package cycle_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/cycle"
)

// SCH-043, SCH-044, SCH-051, SCH-065: the Pod waits for its victims and takes no more, others go on, and when the
// victims are gone it has its room at once.
func TestPreemptorWaitsForItsVictims(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "2")
	f.node("other", "500m")
	f.running(pod("a", "1", on("n", 0)), pod("b", "1", on("n", 0)))
	f.add(pod("p", "2", withPriority(100)))
	f.want("p>n(a b)")
	if f.Nominated("uid-p") != "n" {
		t.Errorf("is nominated for %q", f.Nominated("uid-p"))
	}
	f.add(pod("small", "500m"))
	f.want("small:other")
	f.end("a")
	f.wait(time.Minute)
	f.want("")
	f.wait(5 * time.Minute) // it is tried whatever happens
	v, ok := f.Next(f.now)
	if want := "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to a terminating pod on " +
		"the nominated node."; !ok || v.Message() != want || v.Nominated != "n" {
		t.Errorf("says %q of %q, want %q", v.Message(), v.Nominated, want)
	}
	f.end("b") // before its next delay is over
	f.want("p:n")
	if f.Nominated("uid-p") != "" {
		t.Error("is nominated still")
	}
}

// SCH-045: what victims leave is kept from Pods of lower and of the same priority, until the preemptor has it or goes.
func TestRoomIsKept(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "2")
	f.running(pod("a", "2", on("n", 0)))
	p := pod("p", "1500m", withPriority(100))
	f.add(p)
	f.want("p>n(a)")
	f.RemovePod(f.pods["a"])
	f.add(pod("low", "501m"), pod("same", "501m", withPriority(100)), pod("fits", "500m"))
	f.want("p:n same:- low:- fits:n")

	f = newPreempting(t)
	f.node("n", "1")
	f.running(pod("a", "1", on("n", 0)))
	f.add(p)
	f.want("p:-") // too large
	q := pod("q", "1", withPriority(100))
	f.add(q)
	f.want("q>n(a)")
	f.add(pod("low", "1"))
	f.want("low:-")
	f.RemovePod(q)
	f.end("a")
	f.wait(time.Minute)
	f.want("low:n")
}

// SCH-046: another node that can take the Pod meanwhile gets it.
func TestPreemptorGoesElsewhere(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "1")
	f.running(pod("a", "1", on("n", 0)))
	f.add(pod("p", "1", withPriority(100)))
	f.want("p>n(a)")
	f.wait(2 * time.Second)
	f.node("m", "1")
	f.want("p:m")
	f.end("a")
	f.add(pod("low", "1"))
	f.want("low:n")
}

// SCH-047, SCH-048, SCH-066: one of higher priority takes over the node, and the first looks for victims elsewhere.
func TestHigherPriorityTakesOver(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "1")
	f.running(pod("a", "1", on("n", 0)))
	f.add(pod("p", "1", withPriority(100)))
	f.want("p>n(a)")
	f.add(pod("h", "1", withPriority(1000)))
	f.want("h>n() p:-")
	if f.Nominated("uid-p") != "" || f.Nominated("uid-h") != "n" {
		t.Errorf("nominated are p for %q and h for %q", f.Nominated("uid-p"), f.Nominated("uid-h"))
	}
	f.end("a")
	f.want("h:n")
	f.node("m", "1")
	f.running(pod("b", "1", on("m", 0)))
	f.wait(time.Minute)
	f.want("p>m(b)")
}

// SCH-047: a nomination does not hold up a Pod of higher priority, which may not preempt.
func TestHigherPriorityTakesWhatIsKept(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "2")
	f.running(pod("a", "1", on("n", 0)), pod("b", "1", on("n", 0)))
	f.add(pod("p", "2", withPriority(100)), pod("h", "1", withPriority(1000), neverPreempting))
	f.want("h:- p>n(a b)")
	f.wait(time.Minute)
	f.end("a")
	f.want("h:n p:-") // beside h there is too little
	f.end("b")
	f.wait(time.Minute)
	f.want("")
}

// SCH-043, SCH-045, SCH-065: two Pods of one priority, whose victims end slowly, in any order, and are replaced by Pods
// that want the same room, do not chase each other from node to node: each keeps the node that it has chosen, no Pod is
// evicted beyond what both need, and both are placed.
func TestNoLivelockOfTwoPreemptors(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 6))
		f := newPreempting(t)
		for _, node := range []string{"n", "m", "o"} {
			f.node(node, "2")
			f.running(pod(node+"1", "1", on(node, random.Int32N(3))), pod(node+"2", "1", on(node, random.Int32N(3))))
		}
		f.add(pod("p", "2", withPriority(100)), pod("q", "2", withPriority(100)))
		var leaving []string
		chosen, placed, evicted := map[string]string{}, map[string]string{}, 0
		for range 400 {
			for v, ok := f.Next(f.now); ok; v, ok = f.Next(f.now) {
				if v.Plan != nil {
					leaving = append(leaving, names(v.Plan.Victims)...)
					evicted += len(v.Plan.Victims)
					f.evict(v)
				}
				node := cmp.Or(v.Node, v.Nominated)
				if before, ok := chosen[v.Pod.Name]; ok && node != before {
					t.Fatalf("seed %d: %s goes to %q after %s", seed, v.Pod.Name, node, before)
				}
				if chosen[v.Pod.Name] = node; v.Node != "" {
					placed[v.Pod.Name] = node
				}
			}
			f.wait(time.Duration(random.IntN(60)) * time.Second)
			if len(leaving) > 0 && random.IntN(20) == 0 {
				at := random.IntN(len(leaving))
				f.end(leaving[at])
				f.add(pod("in-place-of-"+leaving[at], "1"))
				leaving = slices.Delete(leaving, at, at+1)
			}
		}
		if evicted != 4 || placed["p"] == "" || placed["q"] == "" || placed["p"] == placed["q"] {
			t.Errorf("seed %d: %d Pods are evicted, want 4; placed are %v", seed, evicted, placed)
		}
	}
}

// A nominated Pod that goes, or whose node goes, leaves nothing behind.
func TestNominationEnds(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "1")
	f.node("m", "1")
	f.running(pod("a", "1", on("n", 0)), pod("b", "1", on("m", 10)))
	f.add(pod("p", "1", withPriority(100)))
	f.want("p>n(a)")
	f.RemoveNode("n")
	f.want("p>m(b)")
	f.end("b")
	f.want("p:m")
	f.end("a")
	if f.State().Slot("n") >= 0 {
		t.Error("the node that is gone is still known")
	}
}

// A restart, or a new leader, goes on with what the API says: it takes no more room than is missing.
func TestNominationOutlivesTheProcess(t *testing.T) {
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }
	f := newPreempting(t)
	f.add(pod("p", "1", withPriority(100), nominated), pod("low", "1"))
	f.running(leaving(pod("a", "1", on("n", 0))), pod("b", "1", on("m", 0)))
	f.node("n", "1")
	f.node("m", "1")
	f.want("p:- low:-")
	f.end("a")
	f.want("p:n")

	// The nomination was not written, but the victim leaves.
	f = newPreempting(t)
	f.node("n", "1")
	f.node("m", "1")
	f.running(pod("b", "1", on("m", 0)), leaving(pod("a", "1", on("n", 0))))
	f.add(pod("p", "1", withPriority(100)))
	f.want("p>n()")

	// Only one of two victims was deleted: the other follows when the first is gone.
	f = newPreempting(t)
	f.node("n", "2")
	f.node("m", "2")
	f.running(leaving(pod("a", "1", on("n", 0))), pod("b", "1", on("n", 0)), pod("c", "2", on("m", 5)))
	f.add(pod("p", "2", withPriority(100), nominated))
	f.want("p:-")
	f.wait(time.Minute)
	f.end("a")
	f.want("p>n(b)")
}

// While its plan is carried out, a Pod is not tried, and no other Pod takes its victims.
func TestPlanUnderWay(t *testing.T) {
	f := newPreempting(t)
	f.node("n1", "1")
	f.node("n2", "1")
	f.running(pod("a", "1", on("n1", 0)), pod("b", "1", on("n2", 0)))
	f.add(pod("p", "1", withPriority(100)), pod("q", "1", withPriority(100)), pod("r", "1", withPriority(100)))
	var plans []cycle.Verdict
	for range 3 {
		v, _ := f.Next(f.now)
		plans = append(plans, v)
	}
	if got := []string{plans[0].Nominated, plans[1].Nominated, plans[2].Nominated}; !slices.Equal(got,
		[]string{"n1", "n2", ""}) {
		t.Fatalf("nominated are %q", got)
	}
	f.wait(time.Hour)
	f.RemovePod(pod("r", "1"))
	f.want("")
	// One plan fails: the victim stays, the Pod is tried again after its delay.
	f.Evicted("uid-p", []types.UID{"uid-a"}, errors.New("no"), f.now)
	f.want("")
	if f.Nominated("uid-p") != "" {
		t.Error("is nominated by a plan that failed")
	}
	f.wait(time.Second)
	f.want("p>n1(a)")
	// The other's victim has ended by itself before the answer came.
	f.end("b")
	f.want("")
	f.Evicted("uid-q", nil, nil, f.now)
	f.want("q:n2")
}

// A budget is not overdrawn by decisions on Pods that are made before it counts each other's victims.
func TestBudgetKnowsOfVictimsUnderWay(t *testing.T) {
	f := newPreempting(t)
	f.node("n1", "1")
	f.node("n2", "1")
	f.node("n3", "1")
	f.running(pod("a", "1", on("n1", 0, app("x"))), pod("b", "1", on("n2", 0, app("x"))), pod("c", "1", on("n3", 50)))
	f.budget("x", "x", 1)
	f.add(pod("p", "1", withPriority(100)), pod("q", "1", withPriority(100)))
	first, _ := f.Next(f.now)
	second, _ := f.Next(f.now)
	if first.Nominated != "n1" || second.Nominated != "n3" || second.Plan.Violations != 0 {
		t.Errorf("nominated for %q and %q, which violates %+v", first.Nominated, second.Nominated, second.Plan)
	}
}

// Room that becomes free helps a Pod that it does not suffice, where Pods of lower priority have the rest.
func TestGainsRequeuePreemptors(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "2")
	f.running(pod("a", "1", on("n", 100)), pod("b", "1", on("n", 0)))
	f.add(pod("p", "2", withPriority(100)))
	f.want("p:-")
	f.wait(time.Minute)
	f.end("a")
	f.want("p>n(b)")
}
