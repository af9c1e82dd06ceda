package cycle_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Where a group that is disrupted as a whole must stay, or costs more, the room of others is taken on another node.
func TestAnotherNodeThanThatOfAGroup(t *testing.T) {
	for name, test := range map[string]struct {
		elsewhere int32
		alone     bool
		want      string
	}{
		"SCH-036: a Pod, where one must stay":   {10, true, "p>b(w)"},
		"SCH-036: a gang, where one must stay":  {10, false, "g0>b(w)"},
		"SCH-058: a Pod, where one costs more":  {8, true, "p>b(w)"},
		"SCH-058: a gang, where one costs more": {8, false, "g0>b(w)"},
		"SCH-058: a Pod, where all cost less":   {6, true, "p>a(v1 v0)"},
		"SCH-058: a gang, where all cost less":  {6, false, "g0>a(v1 v0)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			f.node("a", "1")
			f.node("b", "1")
			f.node("c", "1", cordoned)
			f.SetPodGroup(gangOf("v", 2, together, ofPriority(5)), f.now)
			f.running(pod("v0", "1", withPriority(5), inGroup("v"), onNode("a")),
				pod("w", "1", withPriority(7), onNode("b")),
				pod("v1", "1", withPriority(test.elsewhere), inGroup("v"), onNode("c")))
			if test.alone {
				f.add(pod("p", "1", high))
			} else {
				f.SetPodGroup(gangOf("g", 1, ofPriority(10)), f.now)
				f.gang("g", 1, "1", high)
			}
			f.want(test.want)
		})
	}
}

// A Pod fits whether those of a group on other nodes are gone yet or not: SCH-056.
func TestGroupInADomain(t *testing.T) {
	spread := func(p *corev1.Pod) { labelled("x")(p); evenlyAnywhere(p) }
	for name, test := range map[string]struct {
		runs []*corev1.Pod
		p    func(*corev1.Pod)
		want string
	}{
		"apart from nobody": {[]*corev1.Pod{pod("v1", "1", inGroup("v"), onNode("same"), app("y"))}, apartFrom("x"),
			"p>n(v0 v1)"},
		"apart from one that is still there": {[]*corev1.Pod{pod("v1", "1", inGroup("v"), onNode("same"), app("x"))},
			apartFrom("x"), "p:-"},
		"spread beside two": {[]*corev1.Pod{pod("v1", "1", inGroup("v"), onNode("far"), app("y")),
			pod("x1", "0", onNode("same"), app("x")), pod("x2", "0", onNode("far"), app("x"))}, spread, "p>n(v0 v1)"},
		"spread beside two of which one is to go": {[]*corev1.Pod{
			pod("v1", "1", inGroup("v"), onNode("far"), app("x")), pod("x1", "0", onNode("same"), app("x"))}, spread,
			"p:-"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			f.node("n", "1", inZone("a"), func(n *corev1.Node) { n.Labels["at"] = "n" })
			f.node("same", "1", inZone("a"))
			f.node("far", "1", inZone("b"))
			f.SetPodGroup(gangOf("v", 2, together), f.now)
			f.running(append(test.runs, pod("v0", "1", inGroup("v"), onNode("n")))...)
			f.add(pod("p", "1", high, test.p, at("n")))
			f.want(test.want)
		})
	}
}

// A waiting Pod is tried again when the group loses the Pod that kept the others where they are.
func TestGroupThatMayGoByNow(t *testing.T) {
	for name, happens := range map[string]func(*preempting){
		"the Pod is gone":   func(f *preempting) { f.end("v1") },
		"the Pod leaves":    func(f *preempting) { f.running(leaving(f.pods["v1"])) },
		"the group is gone": func(f *preempting) { f.RemovePodGroup(gangOf("v", 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			f.node("a", "1")
			f.node("b", "1", cordoned)
			f.SetPodGroup(gangOf("v", 2, together), f.now)
			f.running(pod("v0", "1", inGroup("v"), onNode("a")), pod("v1", "1", high, inGroup("v"), onNode("b")))
			f.add(pod("p", "1", high))
			f.want("p:-")
			f.wait(time.Minute)
			f.want("")
			happens(f)
			f.want("p>a(v0)")
		})
	}
}

// A Pod of a group that was given its node goes with the others before the API shows the node.
func TestGroupWhoseNodesAreNotShownYet(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "1")
	f.node("b", "1")
	f.SetPodGroup(gangOf("v", 2, together), f.now)
	f.gang("v", 2, "1")
	f.want("v0:b v1:a")
	f.add(pod("p", "1", high))
	v, _ := f.Next(f.now)
	if v.Plan == nil || len(v.Plan.Victims) != 2 {
		t.Fatalf("the plan is %+v", v.Plan)
	}
	f.counted()
}

// Explain says what the Cycle does: a node whose Pods stay with their group helps no Pod.
func TestExplainGroupThatStays(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "1")
	f.node("b", "1")
	f.node("c", "1", cordoned)
	f.SetPodGroup(gangOf("v", 2, together), f.now)
	f.running(pod("v0", "1", inGroup("v"), onNode("a")), pod("v1", "1", high, inGroup("v"), onNode("c")),
		pod("w", "1", withPriority(7), onNode("b")))
	f.add(pod("p", "1", high))
	const want = `1 of 3 have room without Pods of lower priority (b)
cheapest on b, without default/w (priority 7)
1 of 3: No preemption victims found for incoming pod (some stay: their pod group is disrupted as a whole, ` +
		`and not all of it has a lower priority) (a)
1 of 3: Preemption is not helpful for scheduling (c)`
	if got := f.preemptionFacts("p"); got != want {
		t.Errorf("says\n%s\nwant\n%s", got, want)
	}
	f.want("p>b(w)")
}

// preemptionFacts are what the explanation of a Pod says of the room of others.
func (f *fixture) preemptionFacts(name string) string {
	e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: name})
	var got []string
	for _, fact := range e.Facts {
		if fact.Reason == "Preemption" {
			got = append(got, fact.Message)
		}
	}
	return strings.Join(got, "\n")
}
