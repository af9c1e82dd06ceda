package replicas

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/services/workload-controllers/internal/podset"
)

func TestStatus(t *testing.T) {
	counts := podset.Counts{Active: 5, Labelled: 4, Ready: 3, Available: 2, Terminating: 1,
		NextAvailable: now.Add(7 * time.Second)}
	plan := run(t, Input{Now: now, ReplicaSet: newSet(5), Counts: counts})
	s := plan.Status
	// DEP-152, DEP-041
	if s.Replicas != 5 || s.FullyLabeledReplicas != 4 || s.ReadyReplicas != 3 || s.AvailableReplicas != 2 ||
		*s.TerminatingReplicas != 1 || s.ObservedGeneration != 2 {
		t.Errorf("status %+v", s)
	}
	if !plan.WriteStatus || !plan.Wake.Equal(counts.NextAvailable) { // DEP-141
		t.Errorf("written %t, wakes at %v", plan.WriteStatus, plan.Wake)
	}
	settled := newSet(5, func(set *appsv1.ReplicaSet) { set.Status = s })
	if again := run(t, Input{Now: now, ReplicaSet: settled, Counts: counts}); again.WriteStatus {
		t.Error("a status that does not differ is written")
	}
}

// The writes of a status cost a share of what the Pods cost, whatever the number of Pods.
func TestStatusWritesAreSpaced(t *testing.T) {
	answered := func(set *appsv1.ReplicaSet) { set.Status.ObservedGeneration = set.Generation }
	for _, c := range []struct {
		name     string
		replicas int32
		change   func(*appsv1.ReplicaSet)
		counts   podset.Counts
		ago      time.Duration
		write    bool
		wake     time.Duration // after now; 0 for never
	}{
		{"a few replicas do not wait", 3, answered, podset.Counts{Active: 3, Ready: 1}, time.Millisecond, true, 0},
		{"a thousand wait", 1000, answered, podset.Counts{Active: 1000, Ready: 1}, time.Millisecond, false,
			99 * time.Millisecond},
		{"but not longer than a tenth of a second", 1000, answered, podset.Counts{Active: 1000, Ready: 1},
			100 * time.Millisecond, true, 0},
		{"and never longer than a second", 1_000_000, answered, podset.Counts{Active: 1000, Ready: 1}, time.Second,
			true,
			0},
		{"DEP-019 another generation is answered at once", 1000, func(*appsv1.ReplicaSet) {},
			podset.Counts{Active: 1000}, time.Millisecond, true, 0},
		{"the goal is told at once", 1000, answered, podset.Counts{Active: 1000, Ready: 1000, Available: 1000},
			time.Millisecond, true, 0},
		{"the end of a failure is told at once", 1000, func(set *appsv1.ReplicaSet) {
			answered(set)
			set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure,
				Status: "True"}}
		}, podset.Counts{Active: 1000, Ready: 1}, time.Millisecond, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := run(t, Input{Now: now, ReplicaSet: newSet(c.replicas, c.change), Counts: c.counts,
				Written: now.Add(-c.ago)})
			wake := time.Duration(0)
			if !plan.Wake.IsZero() {
				wake = plan.Wake.Sub(now)
			}
			if plan.WriteStatus != c.write || wake != c.wake {
				t.Errorf("written %t, wakes after %s; want %t, %s", plan.WriteStatus, wake, c.write, c.wake)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	in := Input{Now: now, ReplicaSet: newSet(3), Counts: podset.Counts{Active: 2, Ready: 2, Available: 2}}
	message := failure{doing: "creating", err: errQuota{}}.message()
	status := withFailure(in, reasonFailedCreate, message)
	got := status.Conditions[0]
	// DEP-134, DEP-135
	if got.Type != appsv1.ReplicaSetReplicaFailure || got.Status != "True" || got.Reason != "FailedCreate" ||
		got.Message != `Error creating: pods "frontend-" is forbidden: exceeded quota` {
		t.Errorf("condition %+v", got)
	}
	if status.AvailableReplicas != 2 {
		t.Errorf("status %+v", status)
	}
	in.ReplicaSet.Status = status
	in.Now = now.Add(time.Minute)
	if again := withFailure(in, reasonFailedCreate, message); len(again.Conditions) != 1 ||
		!again.Conditions[0].LastTransitionTime.Equal(&got.LastTransitionTime) {
		t.Errorf("a second failure: %+v", again.Conditions)
	}
	if plan := run(t, in); len(plan.Status.Conditions) != 0 || !plan.WriteStatus { // DEP-137
		t.Errorf("after success: %+v", plan.Status.Conditions)
	}
}

type errQuota struct{}

func (errQuota) Error() string { return `pods "frontend-" is forbidden: exceeded quota` }
