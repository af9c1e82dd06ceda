package daemonset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// SET-158: the figures are about nodes, not about Pods.
func TestFigures(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     *appsv1.DaemonSet
		nodes   []verdict
		pods    []*corev1.Pod
		missing map[string]bool
		want    appsv1.DaemonSetStatus
	}{
		{name: "no Pods", nodes: alike(runs, 2), want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2,
			NumberUnavailable: 2}},
		{name: "all is well", nodes: alike(runs, 2), pods: []*corev1.Pod{newPod("a", "n1", "agent:2"),
			newPod("b", "n2", "agent:2")}, want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2,
			CurrentNumberScheduled: 2, NumberReady: 2, NumberAvailable: 2, UpdatedNumberScheduled: 2}},
		{name: "ready is not available", set: newSet(minReady(100)), nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2")}, want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1,
			CurrentNumberScheduled: 1, NumberReady: 1, UpdatedNumberScheduled: 1, NumberUnavailable: 1}},
		{name: "not ready", nodes: alike(runs, 1), pods: []*corev1.Pod{newPod("a", "n1", "agent:2", unready)},
			want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, CurrentNumberScheduled: 1,
				UpdatedNumberScheduled: 1, NumberUnavailable: 1}},
		{name: "of an earlier template", nodes: alike(runs, 1), pods: []*corev1.Pod{newPod("a", "n1", "agent:1")},
			want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, NumberReady: 1,
				NumberAvailable: 1}},
		{name: "one on its way out is there and serves no more", nodes: alike(runs, 1), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", leaving)}, want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1,
			CurrentNumberScheduled: 1, NumberUnavailable: 1}},
		{name: "two Pods of a node count once, and as updated when the old one has gone",
			set:   newSet(rolling("2", "0")),
			nodes: alike(runs, 2), pods: []*corev1.Pod{newPod("a", "n1", "agent:1"),
				newPod("b", "n1", "agent:2", unready), newPod("c", "n2", "agent:1", leaving),
				newPod("d", "n2", "agent:2")},
			want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, NumberReady: 2,
				NumberAvailable: 2, UpdatedNumberScheduled: 1}},
		{name: "Pods where none should be", nodes: []verdict{unfit, keeps, keeps, runs}, pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2"), newPod("b", "n1", "agent:2", leaving), newPod("c", "n2", "agent:2")},
			want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, NumberMisscheduled: 2, NumberUnavailable: 1}},
		{name: "Pods of nodes that are gone count nowhere", pods: []*corev1.Pod{newPod("a", "n1", "agent:2")},
			missing: map[string]bool{"n1": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.set == nil {
				c.set = newSet()
			}
			collisions := int32(2)
			c.set.Status = appsv1.DaemonSetStatus{CollisionCount: &collisions, NumberReady: 7,
				Conditions: []appsv1.DaemonSetCondition{{Type: "Foreign"}}}
			in := inputOf(c.set, c.nodes, c.pods...)
			in.Missing = c.missing
			got := decide(t, in).Status
			if got.ObservedGeneration != 3 || got.CollisionCount == nil || *got.CollisionCount != 2 ||
				len(got.Conditions) != 1 {
				t.Errorf("status %+v", got)
			}
			got.ObservedGeneration, got.CollisionCount, got.Conditions = 0, nil, nil
			c.want.ObservedGeneration = 0
			if got.DesiredNumberScheduled != c.want.DesiredNumberScheduled ||
				got.CurrentNumberScheduled != c.want.CurrentNumberScheduled || got.NumberReady != c.want.NumberReady ||
				got.NumberAvailable != c.want.NumberAvailable || got.NumberUnavailable != c.want.NumberUnavailable ||
				got.UpdatedNumberScheduled != c.want.UpdatedNumberScheduled ||
				got.NumberMisscheduled != c.want.NumberMisscheduled {
				t.Errorf("status %+v, want %+v", got, c.want)
			}
		})
	}
}

// A status that differs in figures alone waits 100 microseconds for each node, at most a second.
func TestFiguresAreWrittenAtTimes(t *testing.T) {
	reached := appsv1.DaemonSetStatus{ObservedGeneration: 3, DesiredNumberScheduled: 100, CurrentNumberScheduled: 100,
		NumberReady: 100, NumberAvailable: 100, UpdatedNumberScheduled: 100}
	status := func(change func(*appsv1.DaemonSetStatus)) appsv1.DaemonSetStatus {
		s := reached
		change(&s)
		return s
	}
	lacking := func(s *appsv1.DaemonSetStatus) { s.NumberAvailable, s.NumberUnavailable = 90, 10 }
	for _, c := range []struct {
		name   string
		had    appsv1.DaemonSetStatus
		unwell bool // one Pod is not ready
		ago    time.Duration
		writes bool
		wait   time.Duration
	}{
		{name: "nothing new", had: reached},
		{name: "new figures soon after others", had: status(lacking), unwell: true, ago: 9 * time.Millisecond,
			wait: time.Millisecond},
		{name: "new figures when it is time", had: status(lacking), unwell: true, ago: 10 * time.Millisecond,
			writes: true},
		{name: "what was asked for is told at once", had: status(lacking), writes: true},
		{name: "another generation is told at once", had: status(func(s *appsv1.DaemonSetStatus) {
			s.ObservedGeneration = 2
		}), unwell: true, writes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pods []*corev1.Pod
			set := newSet()
			set.Status = c.had
			in := inputOf(set, alike(runs, 100))
			for _, place := range in.Places.list {
				pods = append(pods, newPod("on-"+place.node, place.node, "agent:2"))
			}
			if c.unwell {
				unready(pods[0])
			}
			in.Pods, in.Written = pods, now.Add(-c.ago)
			plan := decide(t, in)
			if plan.WriteStatus != c.writes {
				t.Errorf("writes: %t", plan.WriteStatus)
			}
			if want := now.Add(c.wait); c.wait > 0 && !plan.Wake.Equal(want) || c.wait == 0 && !plan.Wake.IsZero() {
				t.Errorf("wakes at %v, want %v", plan.Wake, want)
			}
		})
	}
}

// A Pod that becomes available by time alone is looked at then.
func TestItWakesForAvailability(t *testing.T) {
	in := inputOf(newSet(minReady(10)), alike(runs, 1), newPod("a", "n1", "agent:2", readyFor(4*time.Second)))
	in.NextAvailable = now.Add(6 * time.Second)
	if plan := decide(t, in); !plan.Wake.Equal(in.NextAvailable) {
		t.Errorf("wakes at %v", plan.Wake)
	}
}
