package cycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/groups"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// The Pods of a Service go to as many nodes as there are, without a constraint of their own. DEP-217, SCH-090
func TestServiceSpreadsItsPods(t *testing.T) {
	for _, service := range []bool{true, false} {
		f := newFixture(t)
		// c is so much larger that nothing but the Service speaks against it.
		f.node("a", "2")
		f.node("b", "2")
		f.node("c", "2000", rulestest.Allocatable(corev1.ResourceMemory, "4Ti"))
		if service {
			f.SetGroup(groups.Group{Name: groups.Name{Kind: groups.Service, NamespacedName: types.NamespacedName{
				Namespace: "default", Name: "web"}}, Labels: map[string]string{"app": "web"}})
		}
		on := map[string]int{}
		for i := range 3 {
			f.SetPod(pod(fmt.Sprint(i), "1m", rulestest.Labelling("app", "web")), f.now)
			v, _ := f.Next(f.now)
			on[v.Node]++
		}
		if service && len(on) != 3 || !service && len(on) == 3 {
			t.Errorf("service %v: Pods are on %v", service, on)
		}
	}
}

// A Pod that waits is looked at again when what it belongs to changes, and those of other namespaces are not.
func TestChangeOfAServiceRequeues(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	p := pod("p", "2", rulestest.Labelling("app", "web"))
	f.SetPod(p, f.now)
	if v, ok := f.Next(f.now); !ok || v.Node != "" {
		t.Fatal("placed")
	}
	set := func(namespace string) {
		f.SetGroup(groups.Group{Name: groups.Name{Kind: groups.Service, NamespacedName: types.NamespacedName{
			Namespace: namespace, Name: "web"}}, Labels: map[string]string{"app": "web"}})
	}
	set("other")
	if _, ok := f.Next(f.now); ok {
		t.Error("tried again for a Service of another namespace")
	}
	set("default")
	if _, ok := f.Next(f.now); !ok {
		t.Error("not tried again for its Service")
	}
	set("default")
	if _, ok := f.Next(f.now); ok {
		t.Error("tried again though nothing changed")
	}
}

// Pods with a node stay where they are, however uneven that has become, and a Pod that waits is placed when a Pod that
// counts is gone, or relabelled, or when a node is. SCH-149, SCH-150
func TestSpreadLaterChanges(t *testing.T) {
	constrained := func(name string, change ...func(*corev1.Pod)) *corev1.Pod {
		return pod(name, "0", append(change, rulestest.Labelling("app", "web"),
			rulestest.Spreading(zone, 1, corev1.DoNotSchedule, "app", "web"))...)
	}
	for name, event := range map[string]func(f *fixture, on *corev1.Pod){
		"gone": func(f *fixture, on *corev1.Pod) { f.RemovePod(on) },
		"relabelled": func(f *fixture, on *corev1.Pod) {
			on = on.DeepCopy()
			on.Labels["app"] = "other"
			f.SetPod(on, f.now)
		},
		"its node is of another zone": func(f *fixture, on *corev1.Pod) {
			f.SetNode(rulestest.Node("a2", rulestest.Labelled(zone, "b"), rulestest.Cordoned))
		},
		"begins to end": func(f *fixture, on *corev1.Pod) {
			on = on.DeepCopy()
			on.DeletionTimestamp = &metav1.Time{}
			f.SetPod(on, f.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.SetNode(rulestest.Node("a", rulestest.Labelled(zone, "a")))
			f.SetNode(rulestest.Node("a2", rulestest.Labelled(zone, "a"), rulestest.Cordoned))
			f.SetNode(rulestest.Node("b", rulestest.Labelled(zone, "b"), rulestest.Cordoned))
			on := constrained("on", onNode("a2"))
			f.add(on, constrained("p"))
			if v, ok := f.Next(f.now); !ok || v.Node != "" {
				t.Fatalf("placed on %q", v.Node)
			}
			event(f, on)
			f.now = f.now.Add(time.Minute)
			if v, ok := f.Next(f.now); !ok || v.Node != "a" {
				t.Errorf("not placed: %s", v.Message())
			}
		})
	}
}

// SCH-126, SCH-139: a node that is not there, or not yet, neither passes nor is scored, though Pods are bound to it
// which count for the constraint where it is known. Where no node is known, a Pod waits without a reason of the rule.
func TestSpreadOverNodesThatAreNotThere(t *testing.T) {
	for _, action := range []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway} {
		web := func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "web"}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone,
				WhenUnsatisfiable: action, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		}
		in := func(value string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels[zone] = value } }
		f := newFixture(t)
		f.node("n", "9", in("a"))
		f.add(pod("there", "1", web, onNode("n")), pod("lost", "1", web, onNode("ghost")))
		f.add(pod("first", "1", web))
		f.want("first:n") // zone b with the ghost would be the better one
		f.RemoveNode("n")
		f.add(pod("second", "1", web))
		v, ok := f.Next(f.now)
		if !ok || v.Node != "" || v.Nodes != 0 || len(v.Reasons) != 0 {
			t.Fatalf("%s: without any node %+v, %v", action, v, ok)
		}
		f.node("ghost", "9", in("b"))
		f.wait(time.Minute)
		f.want("second:ghost")
	}
}
