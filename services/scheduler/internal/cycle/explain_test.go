package cycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Explain finds a Pod that was recreated under its name, even if the end of the old one is seen later.
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

// An explanation names three nodes of those that are refused alike, and counts the rest; it distinguishes twelve
// groups.
func TestExplainStaysReadable(t *testing.T) {
	nodes := func(f *fixture) (out []string) {
		e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"})
		for _, fact := range e.Facts {
			if fact.Reason == "Nodes" {
				out = append(out, fact.Message)
			}
		}
		return out
	}
	for n, want := range map[int]string{3: "3 of 3: can take the Pod (n0, n1, n2)",
		4: "4 of 4: can take the Pod (n0, n1, n2 and 1 more)"} {
		f := newFixture(t)
		f.node("gone", "4")
		f.RemoveNode("gone")
		f.add(pod("on-an-unknown-node", "1", onNode("unknown")))
		for i := range n {
			f.node(fmt.Sprintf("n%d", i), "4")
		}
		f.add(pod("p", "1"))
		if got := nodes(f); len(got) != 1 || got[0] != want {
			t.Errorf("%d nodes: %q, want %q", n, got, want)
		}
	}
	for groups, want := range map[int]string{12: "1 of 12: NodeResourcesFit: Insufficient example.com/r8 (n8)",
		13: "1 in 1 more groups", 14: "2 in 2 more groups"} {
		f := newFixture(t)
		asks := pod("p", "0")
		asks.Spec.Containers[0].Resources.Requests = corev1.ResourceList{}
		for i := range groups {
			asks.Spec.Containers[0].Resources.Requests[extended(i)] = resource.MustParse("1")
			f.node(fmt.Sprintf("n%d", i), "4", func(n *corev1.Node) {
				for other := range groups {
					if other != i {
						n.Status.Allocatable[extended(other)] = resource.MustParse("1")
					}
				}
			})
		}
		f.add(asks)
		want = strings.Replace(want, " in ", fmt.Sprintf(" of %d in ", groups), 1)
		if groups == 12 {
			want = strings.ReplaceAll(want, "8", "9")
		}
		if got := nodes(f); len(got) != min(groups, 13) || got[len(got)-1] != want {
			t.Errorf("%d groups: %q, want %q last", groups, got, want)
		}
	}
}

func extended(i int) corev1.ResourceName {
	return corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))
}

// An explanation lists what would make a Pod fit, the least to do first; if two rules refuse a node, it lists both.
func TestExplainSaysWhatWouldHelp(t *testing.T) {
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
	}
	alsoTainted := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
		}
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, test := range map[string]struct {
		nodes  func(*fixture)
		change func(*corev1.Pod)
		want   []string
	}{
		"less": {func(f *fixture) { f.node("n", "1"); f.node("m", "1800m") }, nil,
			[]string{"200m less cpu: the Pod fits on m"}},
		"nothing but no request": {func(f *fixture) { f.node("n", "0") }, nil,
			[]string{"no request of cpu, which is 2 now: the Pod fits on n"}},
		"a toleration or less": {func(f *fixture) {
			f.node("n", "1")
			f.node("m", "2", tainted)
			f.node("o", "4",
				tainted)
		},
			nil, []string{"toleration dedicated=db:NoSchedule: the Pod fits on m, o", "1 less cpu: the Pod fits on n"}},
		"both": {func(f *fixture) { f.node("n", "1500m", tainted) }, nil,
			[]string{"500m less cpu and toleration dedicated=db:NoSchedule: the Pod fits on n"}},
		"one toleration, not two": {func(f *fixture) {
			f.node("n", "4", tainted, alsoTainted("a"))
			f.node("m", "4",
				alsoTainted("b"))
		},
			nil, []string{"toleration b:NoExecute: the Pod fits on m"}},
		"an uncordoned node": {func(f *fixture) { f.node("n", "2", cordoned) }, nil,
			[]string{"node n uncordoned: the Pod fits on n"}},
		"a label": {func(f *fixture) { f.node("n", "2"); f.node("small", "1") },
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} },
			[]string{"label disk=ssd on node n: the Pod fits on n"}},
		"a hostname that no node has": {func(f *fixture) { f.node("n", "2") },
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "gone"} }, nil},
		"nothing, where there are no nodes": {func(*fixture) {}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.nodes(f)
			p := pod("p", "2")
			if test.change != nil {
				test.change(p)
			}
			f.add(p)
			f.want("p:-")
			e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"})
			var got []string
			for _, fact := range e.Facts {
				if fact.Reason == "WouldFit" {
					got = append(got, fact.Message)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("says %q, want %q", got, test.want)
			}
		})
	}
}

// What preemption would come to on each node, and why it does not help.
func TestExplainSaysWhatPreemptionWouldDo(t *testing.T) {
	f := newPreempting(t)
	f.node("full", "2")
	f.node("important", "2")
	f.node("small", "1")
	f.node("cordoned", "4", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	f.add(pod("low", "1", withPriority(1), onNode("full")), pod("high", "1", withPriority(9), onNode("important")))
	p := pod("p", "2", withPriority(5))
	f.add(p)
	says := func() string { return f.preemptionFacts("p") }
	if got, want := says(), `1 of 4 have room without Pods of lower priority (full)
cheapest on full, without default/low (priority 1)
2 of 4: Preemption is not helpful for scheduling (cordoned, small)
1 of 4: No preemption victims found for incoming pod (important)`; got != want {
		t.Errorf("says\n%s\nwant\n%s", got, want)
	}
	never := corev1.PreemptNever
	p = p.DeepCopy()
	p.Spec.PreemptionPolicy = &never
	f.add(p)
	if got, want := says(), "the Pod takes nobody's room: its preemptionPolicy is Never"; got != want {
		t.Errorf("says %q, want %q", got, want)
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
	if e.Facts[0].Message != "priority 0, 1 failed tries, backoff" || e.Facts[2].Reason != "Nodes" {
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
	expect("fits on no node: 0/1 nodes are available: 1 Insufficient cpu.",
		"1 of 1: NodeResourcesFit: Insufficient cpu (n)")
	f.node("m", "2")
	f.run()
	expect("waits to be tried again", "1 of 2: can take the Pod (m)", "is tried again then")
	f.wait(time.Minute)
	f.want("p:m")
	expect("given node m, which the API does not show yet")
	f.add(pod("p", "2", onNode("m")))
	if _, ok := f.Explain(name); ok {
		t.Error("explains a Pod that has its node")
	}
}
