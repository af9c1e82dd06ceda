package cycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// gangOf returns a PodGroup of at least so many Pods.
func gangOf(name string, least int32, change ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		UID: types.UID("uid-" + name)}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: least}
	for _, c := range change {
		c(g)
	}
	return g
}

func basic(g *schedulingv1beta1.PodGroup) {
	g.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
}

func together(g *schedulingv1beta1.PodGroup) {
	g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
}

func ofPriority(n int32) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Spec.Priority = &n }
}

func inOne(key string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) {
		g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	}
}

func inGroup(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
}

func zoneOf(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
}

// gang adds n Pods of the group, named after it.
func (f *fixture) gang(group string, n int, cpu string, change ...func(*corev1.Pod)) {
	for i := range n {
		f.add(pod(fmt.Sprintf("%s%d", group, i), cpu, append(change, inGroup(group))...))
	}
}

// said is the condition PodGroupInitiallyScheduled of the one group that has news, as "status reason: message".
func (f *fixture) said() string {
	var all []string
	for _, news := range f.TakeGroupNews() {
		for _, c := range news.Conditions {
			all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(all, ", ")
}

// A gang is tried when its PodGroup and enough Pods without gates are there, and not before.
func TestGangWaitsForItsPods(t *testing.T) {
	f := newFixture(t)
	f.node("a", "9")
	f.gang("g", 1, "1")
	f.want("")
	f.SetPodGroup(gangOf("g", 3), f.now)
	f.want("")
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }
	f.gang("g", 3, "1", gated)
	f.want("")
	if _, condition, ok := f.Unschedulable("uid-g0"); ok {
		t.Errorf("a gated Pod says %s", condition.Message)
	}
	f.gang("g", 2, "1")
	f.want("")
	_, condition, ok := f.Unschedulable("uid-g0")
	const want = "waits for pod group g to have at least 3 pods without scheduling gates"
	if !ok || condition.Message != want || condition.Reason != corev1.PodReasonUnschedulable {
		t.Errorf("a held Pod says %v %+v, want %s", ok, condition, want)
	}
	f.gang("g", 3, "1")
	f.want("g0:a g1:a g2:a")
	if got := f.said(); got != "" {
		t.Errorf("before the API shows the nodes the group says %s", got)
	}
	f.gang("g", 3, "1", onNode("a"))
	if got := f.said(); got != "PodGroupInitiallyScheduled=True Scheduled" {
		t.Errorf("the group says %s", got)
	}
}

// All of a gang or nothing: what does not fit whole leaves the room to others, and fits when there is room for all.
func TestGangIsAllOrNothing(t *testing.T) {
	f := newFixture(t)
	f.node("a", "2")
	f.SetPodGroup(gangOf("g", 3), f.now)
	f.gang("g", 3, "1")
	f.want("g0:- g1:- g2:-")
	if got := f.said(); got != "PodGroupInitiallyScheduled=False Unschedulable" {
		t.Errorf("the group says %s", got)
	}
	_, condition, _ := f.Unschedulable("uid-g2")
	if !strings.HasPrefix(condition.Message,
		"pod group g needs 3 pods to be scheduled together, 2 of 3 that wait fit at the same time") {
		t.Errorf("a Pod says %q", condition.Message)
	}
	f.add(pod("alone", "1"))
	f.want("alone:a") // the gang holds no room
	f.wait(5*time.Minute - 1)
	f.want("")
	if at, ok := f.NextTime(f.now); !ok || !at.Equal(start.Add(5*time.Minute)) {
		t.Errorf("the gang is due at %s", at)
	}
	f.wait(1)
	f.want("g0:- g1:- g2:-") // it is tried again after five minutes, whatever happens
	f.want("")
	f.RemovePod(pod("alone", "1"))
	f.wait(time.Hour)
	f.node("b", "1")
	f.want("g0:a g1:b g2:a")
}

// A failed try is no event: it requeues no Pod for the room that the gang did not keep.
func TestFailedGangWakesNobody(t *testing.T) {
	f := newFixture(t)
	f.node("a", "2")
	f.SetPodGroup(gangOf("g", 3), f.now)
	f.SetPodGroup(gangOf("h", 3), f.now)
	f.gang("g", 3, "1")
	f.gang("h", 3, "1")
	f.add(pod("big", "3"))
	f.want("g0:- g1:- g2:- h0:- h1:- h2:- big:-")
	f.wait(time.Minute)
	f.want("")
	if at, ok := f.NextTime(f.now); !ok || at.Before(start.Add(4*time.Minute)) {
		t.Errorf("something is due at %s", at)
	}
}

// More Pods than the gang needs wait for room that comes later; those that have a node count.
func TestGangGrows(t *testing.T) {
	f := newFixture(t)
	f.node("a", "3")
	f.SetPodGroup(gangOf("g", 2), f.now)
	f.gang("g", 4, "1")
	f.want("g0:a g1:a g2:a g3:-")
	f.gang("g", 3, "1", onNode("a"))
	f.node("b", "1")
	f.wait(time.Minute)
	f.want("g3:b")
}

// Pods that join a refused gang have it tried at its own pace, not once for each.
func TestRefusedGangIsTriedAtItsPace(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	f.SetPodGroup(gangOf("g", 2), f.now)
	f.gang("g", 2, "1")
	f.want("g0:- g1:-")
	for i := range 9 {
		f.add(pod(fmt.Sprintf("h%d", i), "1", inGroup("g")))
		f.want("")
	}
	f.add(pod("small", "0", inGroup("g")))
	f.wait(time.Second - 1)
	f.want("")
	f.wait(1)
	f.want("g0:a small:a g1:- h0:- h1:- h2:- h3:- h4:- h5:- h6:- h7:- h8:-")
	f.counted()
}

// A Pod of a gang that could not be bound is tried again by itself: the others that have a node count.
func TestFailedBindUndoesOnlyItself(t *testing.T) {
	f := newFixture(t)
	f.node("a", "3")
	f.SetPodGroup(gangOf("g", 3), f.now)
	f.gang("g", 3, "1")
	f.want("g0:a g1:a g2:a")
	f.gang("g", 2, "1", onNode("a"))
	f.Failed("uid-g2", f.now)
	f.want("")
	f.wait(2 * time.Second)
	f.want("g2:a")
}

// A successor goes on where the gang stands: what is bound counts, what was only decided does not.
func TestGangOutlastsRestart(t *testing.T) {
	f := newFixture(t)
	f.node("a", "3")
	f.SetPodGroup(gangOf("g", 3), f.now)
	f.gang("g", 3, "1")
	if v, ok := f.Next(f.now); !ok || v.Node != "a" {
		t.Fatalf("the first of the gang got %q", v.Node)
	}
	f.Lead(corev1.DefaultSchedulerName, false, f.now) // two verdicts were not handed out yet
	f.want("")
	if n := f.State().Pods(); n != 1 {
		t.Errorf("%d Pods take room, want the one whose binding is under way", n)
	}
	f.counted()
	next := newFixture(t)
	next.gang("g", 3, "1")
	next.gang("g", 1, "1", onNode("a"))
	next.SetPodGroup(gangOf("g", 3), next.now)
	next.node("a", "2")
	next.want("g1:- g2:-") // one more Pod fits, which would be two of three
	next.node("b", "1")
	next.wait(time.Minute)
	next.want("g1:b g2:a")
}

// A group of policy basic is scheduled as far as it fits.
func TestBasicGroup(t *testing.T) {
	f := newFixture(t)
	f.node("a", "2")
	f.gang("g", 3, "1")
	f.want("")
	f.SetPodGroup(gangOf("g", 1, basic), f.now)
	f.want("g0:a g1:a g2:-")
}

// All Pods of a group with a topology constraint are on nodes of one value of the label, and those that come later too.
func TestTopologyOfGang(t *testing.T) {
	f := newFixture(t)
	f.node("none", "9")
	f.node("a1", "2", zoneOf("a"))
	f.node("b1", "2", zoneOf("b"))
	f.node("b2", "1", zoneOf("b"))
	f.SetPodGroup(gangOf("g", 3, inOne(corev1.LabelTopologyZone)), f.now)
	f.gang("g", 3, "1")
	f.want("g0:b1 g1:b2 g2:b1")
	f.add(pod("g3", "1", inGroup("g")))
	f.want("g3:-")
	f.SetPodGroup(gangOf("h", 3, inOne(corev1.LabelTopologyZone)), f.now)
	f.gang("h", 3, "1")
	f.want("h0:- h1:- h2:-") // a node without the label is in no zone
	f.node("b3", "1", zoneOf("b"))
	f.wait(time.Minute)
	f.want("g3:b3 h0:- h1:- h2:-")
}

// Pods of a group that cannot be scheduled as one are refused, and say why.
func TestGroupThatDisagrees(t *testing.T) {
	f := newFixture(t)
	f.node("a", "9")
	f.SetPodGroup(gangOf("g", 2, ofPriority(5)), f.now)
	f.gang("g", 2, "1", withPriority(5))
	f.want("g0:a g1:a")
	f.SetPodGroup(gangOf("h", 2, ofPriority(5)), f.now)
	f.gang("h", 2, "1", withPriority(4))
	f.want("h0:- h1:-")
	_, condition, _ := f.Unschedulable("uid-h1")
	const want = "pod h0 has priority 4 and its pod group h has 5: both must have the same priorityClassName"
	if condition.Message != want {
		t.Errorf("got %q, want %q", condition.Message, want)
	}
}

// Groups and Pods are in one order of priority.
func TestGangHasItsPriority(t *testing.T) {
	f := newFixture(t)
	f.node("a", "2")
	f.add(pod("low", "1"))
	f.SetPodGroup(gangOf("g", 2, ofPriority(5)), f.now)
	f.gang("g", 2, "1", withPriority(5))
	f.want("g0:a g1:a low:-")
}

// What a gang waits for, since when and what ends it.
func TestExplainGroup(t *testing.T) {
	f := newFixture(t)
	f.node("a", "2")
	name := types.NamespacedName{Namespace: "default", Name: "g"}
	if _, ok := f.ExplainGroup(name); ok {
		t.Error("an unknown group is explained")
	}
	says := func(summary string, facts ...string) {
		t.Helper()
		e, ok := f.ExplainGroup(name)
		if !ok || !strings.HasPrefix(e.Summary, summary) {
			t.Errorf("got %v %q, want %q", ok, e.Summary, summary)
		}
		all := fmt.Sprintf("%+v", e.Facts)
		for _, fact := range facts {
			if !strings.Contains(all, fact) {
				t.Errorf("no fact says %q: %s", fact, all)
			}
		}
	}
	f.gang("g", 2, "1")
	says("waits for pod group g to be created", "0 have a node, 2 wait for one")
	f.SetPodGroup(gangOf("g", 3), f.now)
	says("waits for pod group g to have at least 3 pods", "at least 3 pods are scheduled together")
	f.gang("g", 3, "1")
	says("waits for its turn")
	f.run()
	says("pod group g needs 3 pods to be scheduled together, 2 of 3 that wait fit at the same time",
		"is tried again when a node has more room", "alone would fit on 1 of 1 nodes")
	e, ok := f.Explain(types.NamespacedName{Namespace: "default", Name: "g1"})
	if !ok || !strings.HasPrefix(e.Summary, "in pod group g: pod group g needs 3 pods") {
		t.Errorf("a Pod of it is explained by %v %q", ok, e.Summary)
	}
	f.gang("g", 3, "1", onNode("a"))
	says("all 3 pods have a node")
}
