package daemonset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEachNodeHasOnePod(t *testing.T) {
	surging := newSet(rolling("1", "0"))
	for _, c := range []struct {
		name    string
		set     *appsv1.DaemonSet
		nodes   []verdict
		pods    []*corev1.Pod
		missing map[string]bool
		want    string
	}{
		{name: "SET-114 nodes without a Pod get one", nodes: alike(runs, 3), pods: []*corev1.Pod{
			newPod("b", "n2", "agent:2")}, want: "+n1, +n3"},
		{name: "SET-114 nodes with one need nothing", nodes: alike(runs, 2), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2"), newPod("b", "n2", "agent:2", unready)}},
		{name: "SET-114 a Pod that is not bound yet is its node's", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", unbound)}},
		{name: "SET-160 a Pod on its way out is replaced when it is gone", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", leaving)}},
		{name: "SET-152 a Pod on a node that is not to have one goes", nodes: []verdict{unfit, runs},
			pods: []*corev1.Pod{
				newPod("a", "n1", "agent:2"), newPod("b", "n2", "agent:2")}, want: "-a NotSelected"},
		{name: "one that goes already is left alone", nodes: []verdict{unfit}, pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", leaving)}},
		{name: "a node that gets a taint keeps its Pod", nodes: []verdict{keeps}, pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2")}},
		{name: "and gets no new one", nodes: []verdict{keeps}},
		{name: "a Pod that was bound to a node that is gone is podgc's", nodes: alike(unfit, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2")}, missing: map[string]bool{"n1": true}},
		{name: "SET-114 one that was not bound before its node went goes", nodes: alike(unfit, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", unbound)}, missing: map[string]bool{"n1": true}, want: "-a NotSelected"},
		{name: "one that names no node is left alone", pods: []*corev1.Pod{newPod("a", "", "agent:2")}},

		{name: "of two Pods the older one stays", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", younger), newPod("b", "n1", "agent:2")}, want: "-a ScaledDown"},
		{name: "of two as old the first by name", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2"), newPod("b", "n1", "agent:2")}, want: "-b ScaledDown"},
		{name: "one that serves before an older one that does not", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", younger), newPod("b", "n1", "agent:2", unready)}, want: "-b ScaledDown"},
		{name: "one that is bound before an older one that is not", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", younger, unready), newPod("b", "n1", "agent:2", unbound)},
			want: "-b ScaledDown"},
		{name: "whichever template they are of", set: newSet(onDelete), nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", younger), newPod("b", "n1", "agent:1")}, want: "-a ScaledDown"},
		{name: "also the new one", nodes: alike(runs, 2), pods: []*corev1.Pod{newPod("a", "n1", "agent:2"),
			newPod("b", "n1", "agent:1", younger)}, want: "+n2, -b ScaledDown"},
		{name: "also on a node that only keeps its Pod", nodes: alike(keeps, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2"), newPod("b", "n1", "agent:2", younger)}, want: "-b ScaledDown"},
		{name: "with surge, too, of one template", set: surging, nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2"), newPod("b", "n1", "agent:2", younger)}, want: "-b ScaledDown"},

		{name: "SET-160 a Pod that failed is replaced", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", ended(corev1.PodFailed))}, want: "-a Recreated"},
		{name: "SET-160 one that succeeded is replaced", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", ended(corev1.PodSucceeded))}, want: "-a Recreated"},
		{name: "it is no reason to end one that runs", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", ended(corev1.PodFailed)), newPod("b", "n1", "agent:2", younger)},
			want: "-a Recreated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.set == nil {
				c.set = newSet()
			}
			in := inputOf(c.set, c.nodes, c.pods...)
			in.Missing = c.missing
			if got := text(decide(t, in)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// SET-155: whose the Pods are comes first.
func TestOwnersComeFirst(t *testing.T) {
	orphan := newPod("a", "n1", "agent:2", func(pod *corev1.Pod) { pod.OwnerReferences = nil })
	strange := newPod("b", "n2", "agent:2", func(pod *corev1.Pod) { pod.Labels = nil })
	in := inputOf(newSet(), alike(runs, 3), strange)
	in.Orphans, in.Unmatched, in.Revisions = []*corev1.Pod{orphan}, []*corev1.Pod{strange}, nil
	plan := decide(t, in)
	if len(plan.Adopt) != 1 || len(plan.Release) != 1 || text(plan) != "" || plan.History.Create != nil ||
		plan.WriteStatus {
		t.Errorf("plan %+v", plan)
	}
	in.Orphans, in.Unmatched = nil, nil
	left := revisionOf("agent:2", 1)
	left.OwnerReferences = nil
	in.Revisions = []*appsv1.ControllerRevision{left}
	if plan := decide(t, in); len(plan.History.Claims.Adopt) != 1 || text(plan) != "" || plan.WriteStatus {
		t.Errorf("plan %+v", plan)
	}
}

// SET-115 SET-154: one that is being deleted makes and ends no Pods; what becomes of them is not its matter.
func TestADaemonSetThatGoesDoesNothing(t *testing.T) {
	in := inputOf(newSet(func(set *appsv1.DaemonSet) { set.DeletionTimestamp = &metav1.Time{Time: now} }),
		[]verdict{runs, unfit}, newPod("b", "n2", "agent:1"))
	in.Orphans = []*corev1.Pod{newPod("a", "n1", "agent:2")}
	in.Revisions = nil
	plan := decide(t, in)
	if text(plan) != "" || len(plan.Adopt) > 0 || plan.History.Create != nil || plan.WriteStatus {
		t.Errorf("plan %+v", plan)
	}
}

// One pass makes and ends at most 500 Pods.
func TestPassesAreBounded(t *testing.T) {
	for nodes, want := range map[int]int{500: 500, 501: 500} {
		if plan := decide(t, inputOf(newSet(), alike(runs, nodes))); len(plan.Create) != want {
			t.Errorf("%d Pods are made for %d nodes, want %d", len(plan.Create), nodes, want)
		}
		var pods []*corev1.Pod
		for range nodes {
			pods = append(pods, newPod("a", "n1", "agent:2"))
		}
		if plan := Decide(inputOf(newSet(), alike(unfit, 1), pods...)); len(plan.Delete) != want {
			t.Errorf("%d of %d Pods are ended, want %d", len(plan.Delete), nodes, want)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	limit := int32(1)
	set := newSet(func(set *appsv1.DaemonSet) { set.Spec.RevisionHistoryLimit = &limit })
	in := inputOf(set, alike(runs, 1), newPod("a", "n1", "agent:2"))
	in.Revisions = append(in.Revisions, revisionOf("agent:0", 0))
	if plan := decide(t, in); len(plan.Surplus) != 1 || plan.Surplus[0].Revision != 0 {
		t.Errorf("surplus %v, want the one below the limit", plan.Surplus)
	}
	in.Pods = append(in.Pods, newPod("b", "n2", "agent:0", leaving))
	if plan := decide(t, in); len(plan.Surplus) > 0 {
		t.Errorf("surplus %v, of which there is still a Pod", plan.Surplus)
	}
}

// One node that fails every Pod gets the next ones ever later: at once, then after 1 s, 2 s, 4 s ... 15 min.
func TestFailedPodsAreReplacedEverLater(t *testing.T) {
	failed := newPod("a", "n1", "agent:2", ended(corev1.PodFailed))
	for _, c := range []struct {
		name  string
		count int
		ago   time.Duration
		wait  time.Duration // 0: it is replaced
	}{
		{name: "the first"},
		{name: "the second in less than a second", count: 1, ago: 999 * time.Millisecond, wait: time.Millisecond},
		{name: "the second after a second", count: 1, ago: time.Second},
		{name: "the third in less than two", count: 2, ago: 1999 * time.Millisecond, wait: time.Millisecond},
		{name: "the third after two", count: 2, ago: 2 * time.Second},
		{name: "the longest wait", count: 20, ago: 15*time.Minute - time.Second, wait: time.Second},
		{name: "no longer than that", count: 20, ago: 15 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(newSet(), alike(runs, 1), failed)
			in.Failures = map[string]Failure{"n1": {Count: c.count, Last: now.Add(-c.ago), Generation: 3},
				"n2": {Count: 20, Last: now, Generation: 3}}
			plan := decide(t, in)
			if c.wait > 0 {
				if text(plan) != "" || !plan.Wake.Equal(now.Add(c.wait)) {
					t.Errorf("%q, wakes in %v; want nothing for %v", text(plan), plan.Wake.Sub(now), c.wait)
				}
				return
			}
			if text(plan) != "-a Recreated" || plan.Delete[0].Failed != "n1" {
				t.Errorf("%q, failure on %q", text(plan), plan.Delete[0].Failed)
			}
		})
	}
}

func TestFailuresAreForgotten(t *testing.T) {
	f := Failure{Count: 4, Last: now, Generation: 3}
	for _, c := range []struct {
		name       string
		generation int64
		after      time.Duration
		want       int
	}{
		{"they add up", 3, 30 * time.Minute, 5},
		{"after half an hour without one", 3, 30*time.Minute + time.Second, 1},
		{"by another spec", 4, time.Second, 1},
	} {
		if got := f.Again(c.generation, now.Add(c.after)); got.Count != c.want || got.Generation != c.generation ||
			!got.Last.Equal(now.Add(c.after)) {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
	}
}

// SET-159: what users are told, in the field's words.
func TestEvents(t *testing.T) {
	in := inputOf(newSet(), alike(runs, 2), newPod("a", "n1", "agent:2", ended(corev1.PodFailed)),
		newPod("b", "n2", "agent:2", ended(corev1.PodSucceeded)), newPod("c", "n3", "agent:2"))
	got := map[string]string{}
	for _, d := range decide(t, in).Delete {
		got[d.Pod.Name] = ""
		if d.Event != nil {
			got[d.Pod.Name] = d.Event.Type + " " + d.Event.Reason + " " + d.Event.Message
		}
	}
	for pod, want := range map[string]string{
		"a": "Warning FailedDaemonPod Found failed daemon pod default/a on node n1, will try to kill it",
		"b": "Normal SucceededDaemonPod Found succeeded daemon pod default/b on node n2, will try to delete it",
		"c": "",
	} {
		if has, ok := got[pod]; !ok || has != want {
			t.Errorf("%s: %q, want %q", pod, has, want)
		}
	}
}
