package deployment

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
)

func TestCounters(t *testing.T) {
	t.Run("DEP-039 DEP-104 sums over all, updated from the current one", func(t *testing.T) {
		d := newDeployment(15, strategy("3", "2"))
		status := run(t, d, newSet(d, 1, 11, 11), newSet(d, 2, 7, 0)).Status
		if status.Replicas != 18 || status.UpdatedReplicas != 7 || status.ReadyReplicas != 11 ||
			status.AvailableReplicas != 11 || status.UnavailableReplicas != 7 {
			t.Errorf("status %+v", status)
		}
	})
	t.Run("DEP-040 unavailable counts what was asked for", func(t *testing.T) {
		d := newDeployment(3, strategy("1", "1"))
		refused := newSet(d, 2, 2, 0, func(set *appsv1.ReplicaSet) { set.Status.Replicas = 0 })
		status := run(t, d, newSet(d, 1, 2, 2), refused).Status
		if status.Replicas != 2 || status.AvailableReplicas != 2 || status.UnavailableReplicas != 2 {
			t.Errorf("status %+v", status)
		}
	})
	t.Run("DEP-040 DEP-059 a bad image", func(t *testing.T) {
		d := newDeployment(3)
		status := run(t, d, newSet(d, 1, 3, 3), newSet(d, 2, 1, 0)).Status
		if status.UpdatedReplicas != 1 || status.Replicas != 4 || status.AvailableReplicas != 3 ||
			status.UnavailableReplicas != 1 {
			t.Errorf("status %+v", status)
		}
	})
	t.Run("DEP-041 terminating Pods are summed where all are known", func(t *testing.T) {
		d := newDeployment(3)
		two := int32(2)
		old := newSet(d, 1, 0, 0, func(set *appsv1.ReplicaSet) { set.Status.TerminatingReplicas = &two })
		if got := run(t, d, old, newSet(d, 2, 3, 3)).Status.TerminatingReplicas; got == nil || *got != 2 {
			t.Errorf("terminating %v, want 2", got)
		}
		old.Status.TerminatingReplicas = nil
		if got := run(t, d, old, newSet(d, 2, 3, 3)).Status.TerminatingReplicas; got != nil {
			t.Errorf("terminating %d, want unknown", *got)
		}
		old.Status.ObservedGeneration = 0
		if got := run(t, d, old, newSet(d, 2, 3, 3)).Status.TerminatingReplicas; got == nil || *got != 0 {
			t.Errorf("terminating %v, want 0: nobody has seen the old one yet, so it has made no Pods", got)
		}
	})
	t.Run("DEP-019 DEP-126 the generation that was acted on comes with its own counters", func(t *testing.T) {
		d := newDeployment(3, withStatus(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3,
			AvailableReplicas: 3}))
		status := run(t, d, newSet(d, 1, 3, 3)).Status
		if status.ObservedGeneration != 3 || status.UpdatedReplicas != 0 {
			t.Errorf("status %+v", status)
		}
	})
}

func TestAvailable(t *testing.T) {
	for available, want := range map[int32]string{
		3: "True MinimumReplicasAvailable Deployment has minimum availability.",
		2: "False MinimumReplicasUnavailable Deployment does not have minimum availability."} {
		t.Run(fmt.Sprintf("DEP-043 %d of 3", available), func(t *testing.T) {
			d := newDeployment(3)
			got := conditions.Deployment.Find(run(t, d, newSet(d, 2, 3, available)).Status.Conditions,
				appsv1.DeploymentAvailable)
			if text := string(got.Status) + " " + got.Reason + " " + got.Message; text != want {
				t.Errorf("%s, want %s", text, want)
			}
		})
	}
}

func TestReplicaFailure(t *testing.T) {
	d := newDeployment(3, atRevision(2), strategy("1", "1"), withStatus(progressed(reasonUpdated, time.Minute)))
	refused := newSet(d, 2, 2, 0, func(set *appsv1.ReplicaSet) {
		set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: "True",
			Reason: "FailedCreate", Message: "quota"}}
	})
	plan := run(t, d, newSet(d, 1, 2, 2), refused)
	failure := conditions.Deployment.Find(plan.Status.Conditions, appsv1.DeploymentReplicaFailure)
	// DEP-134
	if failure == nil || failure.Status != corev1.ConditionTrue || failure.Reason != "FailedCreate" ||
		failure.Message != "quota" {
		t.Fatalf("condition %+v", failure)
	}
	d.Status = plan.Status
	plan = run(t, d, newSet(d, 1, 0, 0), newSet(d, 2, 3, 3))
	// DEP-137
	if conditions.Deployment.Find(plan.Status.Conditions, appsv1.DeploymentReplicaFailure) != nil ||
		progressOf(plan.Status).Reason != reasonAvailable {
		t.Errorf("conditions %+v", plan.Status.Conditions)
	}
}

func TestSetCondition(t *testing.T) {
	at := func(s int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(s) * time.Second)) }
	var status appsv1.DeploymentStatus
	set := func(s int, condition *appsv1.DeploymentCondition) appsv1.DeploymentCondition {
		setCondition(&status, appsv1.DeploymentProgressing, condition, at(s).Time)
		if len(status.Conditions) > 1 {
			t.Fatalf("%d conditions of one type", len(status.Conditions)) // DEP-042
		}
		return progressOf(status)
	}
	for _, step := range []struct {
		name                string
		second              int
		condition           *appsv1.DeploymentCondition
		updated, transition int
	}{
		{"new", 0, progressing("True", "A", "m"), 0, 0},
		{"DEP-042 the same", 1, progressing("True", "A", "m"), 0, 0},
		{"DEP-042 another message", 2, progressing("True", "A", "n"), 2, 0},
		{"DEP-042 another reason", 3, progressing("True", "B", "n"), 3, 0},
		{"DEP-042 another status", 4, progressing("False", "B", "n"), 4, 4},
	} {
		got := set(step.second, step.condition)
		updated, transition := at(step.updated), at(step.transition)
		if !got.LastUpdateTime.Equal(&updated) || !got.LastTransitionTime.Equal(&transition) {
			t.Errorf("%s: updated %v, transition %v; want %v, %v", step.name, got.LastUpdateTime,
				got.LastTransitionTime, updated, transition)
		}
	}
	set(5, nil)
	if len(status.Conditions) != 0 {
		t.Errorf("conditions %+v after removal", status.Conditions)
	}
}
