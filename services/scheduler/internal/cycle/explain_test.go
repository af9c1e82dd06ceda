package cycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod that was made anew under its name is found by it, though the end of the old one is seen later.
func TestExplainFindsTheNewPodOfAName(t *testing.T) {
	f := newFixture(t)
	again := pod("p", "1", func(p *corev1.Pod) { p.UID = "again" })
	f.add(pod("p", "1"), again)
	f.RemovePod(pod("p", "1"))
	if _, ok := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"}); !ok {
		t.Error("the new Pod is not found")
	}
	f.RemovePod(again)
	if _, ok := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"}); ok {
		t.Error("a Pod that is gone is found")
	}
}

// An explanation names fifty nodes and counts the rest.
func TestExplainNamesFiftyNodes(t *testing.T) {
	for nodes, want := range map[int]string{50: "n49: can take the Pod", 51: "and 1 more nodes",
		53: "and 3 more nodes"} {
		f := newFixture(t)
		f.node("gone", "4")
		f.RemoveNode("gone")
		f.add(pod("on-an-unknown-node", "1", onNode("unknown")))
		for i := range nodes {
			f.node(fmt.Sprintf("n%d", i), "4")
		}
		f.add(pod("p", "1"))
		e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"})
		if len(e.Facts) != 1+min(nodes, 51) || e.Facts[len(e.Facts)-1].Message != want {
			t.Errorf("%d nodes make %d facts, the last is %q, want %q", nodes, len(e.Facts),
				e.Facts[len(e.Facts)-1].Message, want)
		}
	}
}

// What a standby says of a Pod, and of one that was tried and failed to be bound.
func TestExplainOtherPlaces(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	name := types.NamespacedName{Namespace: "default", Name: "p"}
	f.add(pod("p", "1"))
	f.want("p:n")
	f.Failed("uid-p", f.now)
	e, _ := f.Explain(name)
	if e.Summary != "waits to be tried again" || e.Facts[1].Reason != "Retry" ||
		!e.Facts[1].Time.Equal(start.Add(time.Second)) {
		t.Errorf("says %+v", e)
	}
	if e.Facts[0].Message != "priority 0, 1 failed tries, backoff" || e.Facts[2].Reason != "Node" {
		t.Errorf("says %+v", e)
	}
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	if e, _ := f.Explain(name); e.Summary != "another replica of the scheduler leads profile default-scheduler" {
		t.Errorf("says %q", e.Summary)
	}
}

// SCH-033, POD-115: the words of the condition and the event.
func TestMessage(t *testing.T) {
	f := newFixture(t)
	f.add(pod("none", "1"))
	v, _ := f.Next(f.now)
	if want := "0/0 nodes are available: no nodes available to schedule pods."; v.Message() != want {
		t.Errorf("message %q, want %q", v.Message(), want)
	}
	taint := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}} }
	for i := range 3 {
		f.node(fmt.Sprintf("small-%d", i), "1")
	}
	f.node("tainted-0", "64", taint)
	f.node("tainted-1", "64", taint)
	f.add(pod("p", "2", func(p *corev1.Pod) { p.Generation = 7 }))
	f.wait(time.Minute)
	for v.Pod.Name != "p" {
		v, _ = f.Next(f.now)
	}
	want := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", ObservedGeneration: 7,
		Message: "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.",
	}
	if got := v.Condition(); got != want {
		t.Errorf("condition is %+v, want %+v", got, want)
	}
	if p, c, ok := f.Unschedulable("uid-p"); !ok || p.Name != "p" || c != want {
		t.Errorf("the Pod should say %+v, want %+v", c, want)
	}
}

func TestExplain(t *testing.T) {
	f := newFixture(t)
	name := types.NamespacedName{Namespace: "default", Name: "p"}
	expect := func(summary string, facts ...string) {
		t.Helper()
		e, ok := f.Explain(name)
		if !ok || e.Summary != summary {
			t.Errorf("summary %q, %v, want %q", e.Summary, ok, summary)
		}
		all := fmt.Sprint(e.Facts)
		for _, fact := range facts {
			if !strings.Contains(all, fact) {
				t.Errorf("facts %s do not say %q", all, fact)
			}
		}
	}
	if _, ok := f.Explain(name); ok {
		t.Error("explains a Pod that is not there")
	}
	f.add(pod("p", "2", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }))
	expect("held by scheduling gates: g")
	f.add(pod("p", "2", withPriority(7)))
	expect("waits for its turn", "priority 7")
	f.node("n", "1")
	f.want("p:-")
	expect("fits on no node: 0/1 nodes are available: 1 Insufficient cpu.", "n: Insufficient cpu")
	f.node("m", "2")
	f.run()
	expect("waits to be tried again", "m: can take the Pod", "is tried again then")
	f.wait(time.Minute)
	f.want("p:m")
	expect("given node m, which the API does not show yet")
	f.add(pod("p", "2", onNode("m")))
	if _, ok := f.Explain(name); ok {
		t.Error("explains a Pod that has its node")
	}
}
