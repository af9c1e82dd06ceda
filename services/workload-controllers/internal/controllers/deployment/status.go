package deployment

import (
	"fmt"
	"math"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/workload-controllers/internal/revision"
)

// plan writes down the sizes and annotations that were decided, and the resulting status.
func (r *rollout) plan() Plan {
	plan := Plan{Create: r.creation(), Updates: r.updates()}
	status := r.counters()
	progress := r.progress(&status)
	if r.deployment.DeletionTimestamp == nil && !r.isResuming() {
		if r.isComplete(&status) {
			plan.Deletes = r.surplusHistory()
		}
		if r.isStarting() && !r.deployment.Spec.Paused {
			plan.Revision = strconv.FormatInt(r.revision(), 10)
		}
	}
	setCondition(&status, appsv1.DeploymentAvailable, r.availability(&status), r.now)
	setCondition(&status, appsv1.DeploymentProgressing, progress, r.now)
	setCondition(&status, appsv1.DeploymentReplicaFailure, r.replicaFailure(), r.now)
	setCondition(&status, rolledBackCondition, r.rolledBack(), r.now)
	plan.Status = status
	plan.Wake = r.wake(conditions.Deployment.Find(status.Conditions, appsv1.DeploymentProgressing))
	return plan
}

// counters sums up the ReplicaSets' statuses. What is unavailable is counted against the replicas that were asked
// for.
func (r *rollout) counters() appsv1.DeploymentStatus {
	status := appsv1.DeploymentStatus{
		ObservedGeneration: r.deployment.Generation,
		CollisionCount:     r.deployment.Status.CollisionCount,
		Conditions:         r.deployment.Status.Conditions,
	}
	var terminating int32
	known := true
	for _, m := range r.all() {
		counted := m.set.Status
		status.Replicas += counted.Replicas
		status.ReadyReplicas += counted.ReadyReplicas
		status.AvailableReplicas += counted.AvailableReplicas
		if counted.TerminatingReplicas != nil {
			terminating += *counted.TerminatingReplicas
		} else if counted.ObservedGeneration > 0 { // a ReplicaSet that no pass has seen yet has created no Pods
			known = false
		}
	}
	if known {
		status.TerminatingReplicas = &terminating
	}
	if r.current != nil {
		status.UpdatedReplicas = r.current.set.Status.Replicas
	}
	status.UnavailableReplicas = int32(min(max(0, r.total()-int(status.AvailableReplicas)), math.MaxInt32))
	return status
}

func (r *rollout) availability(status *appsv1.DeploymentStatus) *appsv1.DeploymentCondition {
	if status.AvailableReplicas >= r.replicas-r.unavailable {
		return &appsv1.DeploymentCondition{
			Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
			Message: "Deployment has minimum availability.",
		}
	}
	return &appsv1.DeploymentCondition{
		Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable",
		Message: "Deployment does not have minimum availability.",
	}
}

// replicaFailure repeats the condition of the first ReplicaSet that has it, the current one first.
func (r *rollout) replicaFailure() *appsv1.DeploymentCondition {
	for _, m := range r.all() {
		for _, condition := range m.set.Status.Conditions {
			if condition.Type == appsv1.ReplicaSetReplicaFailure {
				return &appsv1.DeploymentCondition{Status: condition.Status, Reason: condition.Reason,
					Message: condition.Message}
			}
		}
	}
	return nil
}

// afterFailedCreate returns the status when the plan's ReplicaSet could not be created.
func afterFailedCreate(in Input, failure string) appsv1.DeploymentStatus {
	status := *in.Deployment.Status.DeepCopy()
	r := rollout{deployment: in.Deployment}
	if r.hasDeadline() {
		setCondition(&status, appsv1.DeploymentProgressing, progressing(corev1.ConditionFalse, reasonCreateError,
			failure), in.Now)
	}
	return status
}

// afterCollision returns the status when the name of the plan's ReplicaSet belongs to another object: the next pass
// finds another name.
func afterCollision(in Input) appsv1.DeploymentStatus {
	status := *in.Deployment.Status.DeepCopy()
	count := int32(1)
	if status.CollisionCount != nil {
		count = *status.CollisionCount + 1
	}
	status.CollisionCount = &count
	return status
}

// setCondition gives the status the condition of the type; nil removes it.
func setCondition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType,
	condition *appsv1.DeploymentCondition, now time.Time) {
	if condition == nil {
		status.Conditions = conditions.Deployment.Remove(status.Conditions, kind)
		return
	}
	next := *condition
	next.Type = kind
	status.Conditions, _ = conditions.Deployment.Set(status.Conditions, next, now)
}

func progressing(status corev1.ConditionStatus, reason, message string) *appsv1.DeploymentCondition {
	return &appsv1.DeploymentCondition{Status: status, Reason: reason, Message: message}
}

func quoted(format string, m *member) string { return fmt.Sprintf(format, m.set.Name) }

// revisionPatch returns the merge patch that sets a Deployment's revision.
func revisionPatch(number string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, revision.Annotation, number)
}
