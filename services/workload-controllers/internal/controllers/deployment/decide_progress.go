package deployment

import (
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/seconds"
)

// Reasons of the condition Progressing.
const (
	reasonCreated     = "NewReplicaSetCreated"
	reasonFound       = "FoundNewReplicaSet"
	reasonUpdated     = "ReplicaSetUpdated"
	reasonAvailable   = "NewReplicaSetAvailable"
	reasonTimedOut    = "ProgressDeadlineExceeded"
	reasonCreateError = "ReplicaSetCreateError"
	reasonPaused      = "DeploymentPaused"
	reasonResumed     = "DeploymentResumed"
)

// progress returns the condition Progressing; nil when the Deployment has no progress deadline and so no such
// condition.
//
//	Created ─┐            ┌─> Available ── new template ──> Created, Found
//	Found ───┼─> Updated ─┤
//	Resumed ─┘     ^      └─> TimedOut ── progress ──> Updated, Available
//	               └ progress ┘
//	any but TimedOut ── paused ──> Paused ── resumed ──> Resumed
func (r *rollout) progress(status *appsv1.DeploymentStatus) *appsv1.DeploymentCondition {
	if !r.hasDeadline() {
		return nil
	}
	last := conditions.Deployment.Find(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	switch {
	case r.deployment.DeletionTimestamp != nil:
		return last
	case r.deployment.Spec.Paused:
		if last != nil && last.Reason == reasonTimedOut {
			return last
		}
		return progressing(corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case r.isResuming():
		return progressing(corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	case r.current == nil:
		return last
	default:
		return r.underWay(last, status)
	}
}

// underWay returns the condition of a rollout that has a current ReplicaSet and may go on.
func (r *rollout) underWay(last *appsv1.DeploymentCondition,
	status *appsv1.DeploymentStatus) *appsv1.DeploymentCondition {
	switch {
	case r.current.created:
		return progressing(corev1.ConditionTrue, reasonCreated, quoted("Created new replica set %q", r.current))
	case last == nil || r.isStarting():
		return progressing(corev1.ConditionTrue, reasonFound, quoted("Found new replica set %q", r.current))
	case last.Reason == reasonAvailable:
		return last
	case r.isComplete(status):
		return progressing(corev1.ConditionTrue, reasonAvailable, quoted("ReplicaSet %q has successfully progressed.",
			r.current))
	case r.hasProgressed(status):
		condition := progressing(corev1.ConditionTrue, reasonUpdated, quoted("ReplicaSet %q is progressing.",
			r.current))
		condition.LastUpdateTime.Time = r.now // progress restarts the time even where the words stay
		return condition
	case r.isOverdue(last):
		return progressing(corev1.ConditionFalse, reasonTimedOut, timedOut(r.current))
	default:
		return last
	}
}

func timedOut(m *member) string { return quoted("ReplicaSet %q has timed out progressing.", m) }

// isResuming reports whether the end of a pause is still to be reported. Nothing else happens in the pass that
// reports it.
func (r *rollout) isResuming() bool {
	last := conditions.Deployment.Find(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	return !r.deployment.Spec.Paused && r.hasDeadline() && last != nil && last.Reason == reasonPaused
}

// isComplete reports whether all replicas have the current template and are available, and none of another is left.
func (r *rollout) isComplete(status *appsv1.DeploymentStatus) bool {
	return r.current != nil && r.total() == int(r.replicas) && r.current.size == r.replicas &&
		status.UpdatedReplicas == r.replicas &&
		status.Replicas == r.replicas && status.AvailableReplicas == r.replicas
}

// hasProgressed reports whether the rollout has come nearer to its end since the last status, or does with this plan.
func (r *rollout) hasProgressed(status *appsv1.DeploymentStatus) bool {
	last := &r.deployment.Status
	if status.UpdatedReplicas > last.UpdatedReplicas || status.ReadyReplicas > last.ReadyReplicas ||
		status.AvailableReplicas > last.AvailableReplicas ||
		status.Replicas-status.UpdatedReplicas < last.Replicas-last.UpdatedReplicas {
		return true
	}
	if r.current.size > r.current.replicas() {
		return true
	}
	for _, m := range r.old {
		if m.size < m.replicas() {
			return true
		}
	}
	return false
}

// isOverdue reports whether the deadline has passed since the last progress.
func (r *rollout) isOverdue(last *appsv1.DeploymentCondition) bool {
	return last.Reason != reasonTimedOut && r.deadline(last).Before(r.now)
}

// wake returns when the deadline has to be looked at; the zero time where it is not running.
func (r *rollout) wake(condition *appsv1.DeploymentCondition) time.Time {
	if condition == nil || r.deployment.DeletionTimestamp != nil {
		return time.Time{}
	}
	if r.isResuming() {
		return r.now // the next pass goes on with the rollout
	}
	switch condition.Reason {
	case reasonPaused, reasonAvailable, reasonTimedOut:
		return time.Time{}
	}
	// Times are stored in whole seconds, so that the deadline may seem up to one second nearer than it is.
	return r.deadline(condition).Add(time.Second)
}

func (r *rollout) deadline(condition *appsv1.DeploymentCondition) time.Time {
	return condition.LastUpdateTime.Add(seconds.Of(*r.deployment.Spec.ProgressDeadlineSeconds))
}

func (r *rollout) hasDeadline() bool {
	seconds := r.deployment.Spec.ProgressDeadlineSeconds
	return seconds != nil && *seconds != math.MaxInt32
}
