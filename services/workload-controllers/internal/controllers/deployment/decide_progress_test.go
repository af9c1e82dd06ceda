package deployment

import (
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// seen adds the counters of ReplicaSets as they were to a status.
func seen(status appsv1.DeploymentStatus, replicas, updated, ready, available int32) appsv1.DeploymentStatus {
	status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas = replicas, updated, ready,
		available
	return status
}

func TestProgressing(t *testing.T) {
	for _, c := range []struct {
		label    string
		replicas int32
		revision int
		status   appsv1.DeploymentStatus
		change   func(*appsv1.Deployment)
		sets     []state
		want     string
		wake     time.Duration // after now; 0 for never
	}{
		{"DEP-120 a new ReplicaSet", 3, 1, seen(progressed(reasonAvailable, time.Hour), 3, 3, 3, 3), nil,
			[]state{{1, 3, 3}}, "True " + reasonCreated, 601 * time.Second},
		{"DEP-120 an existing one becomes the current one", 3, 3, seen(progressed(reasonAvailable, time.Hour), 3, 3, 3,
			3), nil, []state{{2, 0, 0}, {3, 3, 3}}, "True " + reasonFound, 601 * time.Second},
		{"DEP-120 also after a failed rollout", 3, 3, seen(progressed(reasonTimedOut, time.Hour), 4, 1, 3, 3), nil,
			[]state{{2, 3, 3}, {3, 1, 0}}, "True " + reasonFound, 601 * time.Second},
		{"DEP-119 DEP-120 new Pods are there", 3, 2, seen(progressed(reasonCreated, time.Minute), 3, 0, 3, 3), nil,
			[]state{{1, 3, 3}, {2, 1, 0}}, "True " + reasonUpdated, 601 * time.Second},
		{"DEP-119 old Pods are gone", 3, 2, seen(progressed(reasonUpdated, time.Minute), 4, 1, 3, 3), nil,
			[]state{{1, 2, 2}, {2, 1, 0}}, "True " + reasonUpdated, 601 * time.Second},
		{"DEP-119 nothing but old Pods being gone", 3, 2, seen(progressed(reasonUpdated, time.Minute), 5, 2, 2, 2), nil,
			[]state{{1, 2, 2}, {2, 2, 0}}, "True " + reasonUpdated, 601 * time.Second},
		{"DEP-119 the newest grows", 3, 2, seen(progressed(reasonUpdated, time.Minute), 3, 1, 3, 3), nil,
			[]state{{1, 2, 2}, {2, 1, 1}}, "True " + reasonUpdated, 601 * time.Second},
		{"DEP-129 no progress", 3, 2, seen(progressed(reasonUpdated, time.Minute), 4, 1, 3, 3), nil,
			[]state{{1, 3, 3}, {2, 1, 0}}, "True " + reasonUpdated, 541 * time.Second},
		{"DEP-129 no progress for too long", 3, 2, seen(progressed(reasonUpdated, 601*time.Second), 4, 1, 3, 3), nil,
			[]state{{1, 3, 3}, {2, 1, 0}}, "False " + reasonTimedOut, 0},
		{"DEP-129 it stays so", 3, 2, seen(progressed(reasonTimedOut, time.Hour), 4, 1, 3, 3), nil,
			[]state{{1, 3, 3}, {2, 1, 0}}, "False " + reasonTimedOut, 0},
		{"DEP-132 until there is progress", 3, 2, seen(progressed(reasonTimedOut, time.Hour), 4, 1, 3, 3), nil,
			[]state{{1, 3, 3}, {2, 1, 1}}, "True " + reasonUpdated, 601 * time.Second},
		{"DEP-122 complete", 3, 2, seen(progressed(reasonUpdated, time.Minute), 4, 3, 4, 4), nil,
			[]state{{1, 0, 0}, {2, 3, 3}}, "True " + reasonAvailable, 0},
		{"DEP-122 not while an old one is to have replicas", 3, 2, seen(progressed(reasonUpdated, time.Minute), 3, 3, 3,
			3), nil, []state{{1, 1, 0}, {2, 3, 3}}, "True " + reasonUpdated, 601 * time.Second},
		{"DEP-132 complete after the deadline", 3, 2, seen(progressed(reasonTimedOut, time.Hour), 3, 3, 2, 2), nil,
			[]state{{2, 3, 3}}, "True " + reasonAvailable, 0},
		{"DEP-123 complete stays, whatever becomes unavailable", 3, 2, seen(progressed(reasonAvailable, time.Hour), 3,
			3, 3, 3), nil, []state{{2, 3, 0}}, "True " + reasonAvailable, 0},
		{"DEP-131 without a deadline to miss", 3, 2, seen(progressed(reasonAvailable, 24*time.Hour), 3, 3, 0, 0), nil,
			[]state{{2, 3, 0}}, "True " + reasonAvailable, 0},
		{"DEP-123 scaling is no rollout", 5, 2, seen(progressed(reasonAvailable, time.Hour), 3, 3, 3, 3), nil,
			[]state{{2, 3, 3}}, "True " + reasonAvailable, 0},
		{"DEP-117 paused", 3, 2, seen(progressed(reasonUpdated, time.Hour), 4, 1, 3, 3), paused,
			[]state{{1, 3, 3}, {2, 1, 0}}, "Unknown " + reasonPaused, 0},
		{"DEP-117 resumed", 3, 2, seen(progressed(reasonPaused, time.Hour), 4, 1, 3, 3), nil,
			[]state{{1, 3, 3}, {2, 1, 0}}, "Unknown " + reasonResumed, 0},
		{"DEP-117 the pause does not count", 3, 2, seen(progressed(reasonResumed, time.Minute), 4, 1, 3, 3), nil,
			[]state{{1, 3, 3}, {2, 1, 0}}, "Unknown " + reasonResumed, 541 * time.Second},
		{"DEP-139 a failed one that is paused stays failed", 3, 2, seen(progressed(reasonTimedOut, time.Hour), 4, 1, 3,
			3), paused, []state{{1, 3, 3}, {2, 1, 0}}, "False " + reasonTimedOut, 0},
		{"without a deadline there is no condition", 3, 2, seen(progressed(reasonUpdated, time.Hour), 4, 1, 3, 3),
			func(d *appsv1.Deployment) {
				forever := int32(math.MaxInt32)
				d.Spec.ProgressDeadlineSeconds = &forever
			}, []state{{1, 3, 3}, {2, 1, 0}}, " ", 0},
	} {
		t.Run(c.label, func(t *testing.T) {
			d := newDeployment(c.replicas, atRevision(c.revision), withStatus(c.status))
			if c.change != nil {
				c.change(d)
			}
			var sets []*appsv1.ReplicaSet
			for _, s := range c.sets {
				sets = append(sets, newSet(d, s.number, s.size, s.available))
			}
			plan := run(t, d, sets...)
			got := progressOf(plan.Status)
			if text := string(got.Status) + " " + got.Reason; text != c.want {
				t.Errorf("condition %s, want %s", text, c.want)
			}
			wake := time.Duration(0)
			if !plan.Wake.IsZero() {
				wake = plan.Wake.Sub(now)
			}
			if wake != c.wake {
				t.Errorf("wakes after %s, want %s", wake, c.wake)
			}
		})
	}
}

// DEP-122: a rollout is not complete while an old ReplicaSet may still make a Pod.
func TestUnansweredOldSizeIsNotComplete(t *testing.T) {
	d := newDeployment(3, atRevision(2), withStatus(seen(progressed(reasonUpdated, time.Minute), 3, 3, 3, 3)))
	old := newSet(d, 1, 1, 0, func(set *appsv1.ReplicaSet) { set.Generation, set.Status.Replicas = 2, 0 })
	if got := progressOf(run(t, d, old, newSet(d, 2, 3, 3)).Status); got.Reason != reasonUpdated {
		t.Errorf("condition %s %s", got.Status, got.Reason)
	}
}

func TestProgressMessages(t *testing.T) {
	d := newDeployment(3)
	created := run(t, d)
	name := created.Create.ReplicaSet.Name
	for want, status := range map[string]appsv1.DeploymentStatus{
		`Created new replica set "` + name + `"`: created.Status,
		`Found new replica set "` + name + `"`:   run(t, d, newSet(d, 2, 3, 0)).Status,
		// DEP-121
		`ReplicaSet "` + name + `" is progressing.`: run(t, newDeployment(3, atRevision(2),
			withStatus(progressed(reasonCreated, 0))), newSet(d, 2, 3, 0)).Status,
		`ReplicaSet "` + name + `" has successfully progressed.`: run(t, newDeployment(3, atRevision(2),
			withStatus(progressed(reasonCreated, 0))), newSet(d, 2, 3, 3)).Status,
		`ReplicaSet "` + name + `" has timed out progressing.`: run(t, newDeployment(3, atRevision(2),
			withStatus(seen(progressed(reasonCreated, time.Hour), 3, 3, 0, 0))), newSet(d, 2, 3, 0)).Status,
	} {
		if got := progressOf(status).Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
}

// DEP-117: the pass that reports the end of a pause does nothing else, and another follows at once.
func TestResumeIsReportedFirst(t *testing.T) {
	d := newDeployment(3, atRevision(1), withStatus(progressed(reasonPaused, time.Minute)))
	plan := run(t, d, newSet(d, 1, 3, 3))
	if plan.Create != nil || len(plan.Updates) != 0 || plan.Revision != "" || !plan.Wake.Equal(now) {
		t.Errorf("plan %+v", plan)
	}
	d.Status = plan.Status
	// DEP-113
	if plan = run(t, d, newSet(d, 1, 3, 3)); plan.Create == nil || progressOf(plan.Status).Reason != reasonCreated {
		t.Errorf("the pass after: %+v", plan)
	}
}

func TestFailedCreate(t *testing.T) {
	d := newDeployment(3, withStatus(progressed(reasonAvailable, time.Hour)))
	status := afterFailedCreate(Input{Now: now, Deployment: d}, "quota")
	// DEP-130
	if got := progressOf(status); got.Status != "False" || got.Reason != reasonCreateError || got.Message != "quota" {
		t.Errorf("condition %+v", got)
	}
	d.Status = status
	if again := afterFailedCreate(Input{Now: now.Add(time.Minute), Deployment: d},
		"quota"); progressOf(again) != progressOf(status) {
		t.Error("a second failure of the same kind changes the condition")
	}
}
