package rows

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// judged is what a row of a workload says.
type judged struct {
	done, wanted int32
	state        string
	tone         Tone
}

func (want judged) check(t *testing.T, got Workload) {
	t.Helper()
	if said := (judged{got.Done, got.Wanted, got.State, got.Tone}); said != want {
		t.Errorf("got %+v, want %+v", said, want)
	}
}

// deployment is one of 3 replicas, whose status counts all, updated, available ones.
func deployment(all, updated, available int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web", Generation: 2},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: all, UpdatedReplicas: updated,
			AvailableReplicas: available}}
	for _, f := range change {
		f(d)
	}
	return d
}

// condition gives a Deployment a condition.
func condition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string,
) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: kind, Status: status,
			Reason: reason, Message: message})
	}
}

func TestDeployment(t *testing.T) {
	stuck := condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", "it is late")
	refused := condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", "exceeded quota")
	for name, row := range map[string]struct {
		d    *appsv1.Deployment
		want judged
	}{
		// DEP-126: in this order.
		"not seen yet": {deployment(3, 3, 3, func(d *appsv1.Deployment) { d.Generation = 3 }),
			judged{3, 3, "its controller has not seen the newest change yet", Busy}},
		"new": {deployment(0, 0, 0),
			judged{0, 3, "0 of 3 replicas are of the current template", Busy}},
		"created": {deployment(3, 3, 0),
			judged{0, 3, "0 of 3 replicas are available", Busy}},
		"the first new one": {deployment(4, 1, 3),
			judged{0, 3, "1 of 3 replicas are of the current template", Busy}},
		"it is available": {deployment(4, 1, 4),
			judged{1, 3, "1 of 3 replicas are of the current template", Busy}},
		"all are new": {deployment(4, 3, 4),
			judged{3, 3, "1 surplus replica is still there", Busy}},
		"all but one come up": {deployment(3, 3, 2),
			judged{2, 3, "2 of 3 replicas are available", Busy}},
		"complete, of DEP-122": {deployment(3, 3, 3), judged{3, 3, "rolled out", Good}},
		"stalled, of DEP-129": {deployment(4, 1, 3, stuck), judged{0, 3,
			"1 of 3 replicas are of the current template; ProgressDeadlineExceeded: it is late", Bad}},
		"refused, of DEP-134": {deployment(3, 0, 3, refused), judged{0, 3,
			"0 of 3 replicas are of the current template; FailedCreate: exceeded quota", Bad}},
		"DEP-131: complete, and late before": {deployment(3, 3, 3, stuck), judged{3, 3, "rolled out", Good}},
		"paused": {deployment(3, 0, 3, func(d *appsv1.Deployment) { d.Spec.Paused = true }),
			judged{0, 3, "paused: 0 of 3 replicas are of the current template", Idle}},
		"scaled to 0": {deployment(0, 0, 0, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }),
			judged{0, 0, "scaled to 0", Idle}},
		"one by default": {deployment(1, 1, 1, func(d *appsv1.Deployment) { d.Spec.Replicas = nil }),
			judged{1, 1, "rolled out", Good}},
		"being deleted": {deployment(3, 3, 3, func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} }),
			judged{3, 3, "is being deleted", Busy}},
	} {
		t.Run(name, func(t *testing.T) { row.want.check(t, Deployment(row.d)) })
	}
}

func TestStatefulSet(t *testing.T) {
	set := func(all, updated, available int32, change func(*appsv1.StatefulSetSpec)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))},
			Status: appsv1.StatefulSetStatus{Replicas: all, UpdatedReplicas: updated, AvailableReplicas: available}}
		if change != nil {
			change(&s.Spec)
		}
		return s
	}
	from2 := func(s *appsv1.StatefulSetSpec) {
		s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
	}
	onDelete := func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }
	for name, row := range map[string]struct {
		s    *appsv1.StatefulSet
		want judged
	}{
		"the first comes up": {set(1, 1, 0, nil), judged{0, 3, "1 of 3 replicas are of the current template", Busy}},
		"all":                {set(3, 3, 3, nil), judged{3, 3, "rolled out", Good}},
		"SET-112: the part above its partition is to be updated": {set(3, 0, 3, from2),
			judged{2, 3, "0 of 1 replicas are of the current template", Busy}},
		"it is":              {set(3, 1, 3, from2), judged{3, 3, "rolled out", Good}},
		"by hand, none is":   {set(3, 0, 3, onDelete), judged{3, 3, "rolled out", Good}},
		"by hand, one fails": {set(3, 1, 2, onDelete), judged{2, 3, "2 of 3 replicas are available", Busy}},
		"by hand, scaled up": {set(3, 0, 3, func(s *appsv1.StatefulSetSpec) {
			onDelete(s)
			s.Replicas = new(int32(5))
		}), judged{3, 5, "3 of 5 replicas are available", Busy}},
		"scaled down": {set(5, 5, 5, nil), judged{3, 3, "2 surplus replicas are still there", Busy}},
	} {
		t.Run(name, func(t *testing.T) { row.want.check(t, StatefulSet(row.s)) })
	}
}

func TestDaemonSet(t *testing.T) {
	set := func(desired, current, updated, available, misplaced int32) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: desired,
			CurrentNumberScheduled: current, UpdatedNumberScheduled: updated, NumberAvailable: available,
			NumberMisscheduled: misplaced}}
	}
	onDelete := set(2, 2, 0, 2, 0)
	onDelete.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	for name, row := range map[string]struct {
		d    *appsv1.DaemonSet
		want judged
	}{
		"of no node":       {set(0, 0, 0, 0, 0), judged{0, 0, "no node is to run it", Idle}},
		"new":              {set(2, 0, 0, 0, 0), judged{0, 2, "0 of 2 Pods are of the current template", Busy}},
		"half":             {set(2, 2, 1, 2, 0), judged{1, 2, "1 of 2 Pods are of the current template", Busy}},
		"one comes up":     {set(2, 2, 2, 1, 0), judged{1, 2, "1 of 2 Pods are available", Busy}},
		"one where no one": {set(2, 2, 2, 2, 1), judged{2, 2, "1 surplus Pod is still there", Busy}},
		"all":              {set(2, 2, 2, 2, 0), judged{2, 2, "rolled out", Good}},
		"by hand":          {onDelete, judged{2, 2, "rolled out", Good}},
	} {
		t.Run(name, func(t *testing.T) { row.want.check(t, DaemonSet(row.d)) })
	}
}

func TestJob(t *testing.T) {
	job := func(completions *int32, status batchv1.JobStatus, conditions ...batchv1.JobConditionType) *batchv1.Job {
		for _, c := range conditions {
			status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue,
				Reason: "R", Message: "m"})
		}
		return &batchv1.Job{Spec: batchv1.JobSpec{Completions: completions}, Status: status}
	}
	resumed := job(new(int32(1)), batchv1.JobStatus{Active: 1})
	resumed.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}
	for name, row := range map[string]struct {
		j    *batchv1.Job
		want judged
	}{
		"runs": {job(new(int32(5)), batchv1.JobStatus{Active: 2, Succeeded: 1}),
			judged{1, 5, "1 of 5 completed, 2 running", Busy}},
		"some failed": {job(new(int32(5)), batchv1.JobStatus{Active: 2, Failed: 3}),
			judged{0, 5, "0 of 5 completed, 2 running, 3 failed", Busy}},
		"of a work queue": {job(nil, batchv1.JobStatus{Active: 2}), judged{0, 1, "0 completed, 2 running", Busy}},
		"of a work queue, as it ends": {job(nil, batchv1.JobStatus{Active: 1, Succeeded: 3}),
			judged{3, 3, "3 completed, 1 running", Busy}},
		"JOB-144: suspended": {job(new(int32(1)), batchv1.JobStatus{}, batchv1.JobSuspended),
			judged{0, 1, "suspended", Idle}},
		"JOB-144: resumed": {resumed, judged{0, 1, "0 of 1 completed, 1 running", Busy}},
		"JOB-079: is to fail": {job(new(int32(1)), batchv1.JobStatus{Failed: 1}, batchv1.JobFailureTarget),
			judged{0, 1, "failed: R: m", Bad}},
		"failed": {job(new(int32(1)), batchv1.JobStatus{Failed: 1}, batchv1.JobFailureTarget, batchv1.JobFailed),
			judged{0, 1, "failed: R: m", Bad}},
		"JOB-108: success is met": {job(new(int32(3)), batchv1.JobStatus{Succeeded: 1}, batchv1.JobSuccessCriteriaMet),
			judged{1, 3, "has succeeded, and its last Pods end", Busy}},
		"JOB-129: complete": {job(new(int32(3)), batchv1.JobStatus{Succeeded: 1}, batchv1.JobSuccessCriteriaMet,
			batchv1.JobComplete), judged{3, 3, "completed", Idle}},
	} {
		t.Run(name, func(t *testing.T) { row.want.check(t, Job(row.j)) })
	}
}

// A text that fills a page stays out of a table, and is cut between characters.
func TestShortened(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"short", "short"}, {strings.Repeat("x", longest), strings.Repeat("x", longest)},
		{strings.Repeat("ü", longest), strings.Repeat("ü", longest)},
		{strings.Repeat("ü", longest) + "x", strings.Repeat("ü", longest) + "…"},
	} {
		if got := shortened(row.text); got != row.want {
			t.Errorf("of %d bytes: %d bytes, want %d", len(row.text), len(got), len(row.want))
		}
	}
}
