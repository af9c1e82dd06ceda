package replicas

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/workload-controllers/internal/pace"
)

// withStatus completes a plan with the status of a pass that succeeds.
func withStatus(in Input, plan Plan) Plan {
	plan.Status = figures(in)
	plan.Status.Conditions = conditions.ReplicaSet.Remove(plan.Status.Conditions, appsv1.ReplicaSetReplicaFailure)
	plan.Wake = pace.Earlier(plan.Wake, in.Counts.NextAvailable)
	if apiequality.Semantic.DeepEqual(plan.Status, in.ReplicaSet.Status) {
		return plan
	}
	due := pace.StatusDue(in.Written, replicasOf(in.ReplicaSet))
	plan.WriteStatus = !due.After(in.Now) || !onlyFiguresDiffer(plan.Status, in.ReplicaSet.Status) ||
		isReached(in, plan.Status)
	if !plan.WriteStatus {
		plan.Wake = pace.Earlier(plan.Wake, due)
	}
	return plan
}

// figures returns the status as far as the Pods give it, with the conditions as they were.
func figures(in Input) appsv1.ReplicaSetStatus {
	terminating := in.Counts.Terminating
	return appsv1.ReplicaSetStatus{
		Replicas:             in.Counts.Active,
		FullyLabeledReplicas: in.Counts.Labelled,
		ReadyReplicas:        in.Counts.Ready,
		AvailableReplicas:    in.Counts.Available,
		TerminatingReplicas:  &terminating,
		ObservedGeneration:   in.ReplicaSet.Generation,
		Conditions:           in.ReplicaSet.Status.Conditions,
	}
}

// withFailure returns the status of a pass in which Pods could not be created or deleted.
func withFailure(in Input, reason, message string) appsv1.ReplicaSetStatus {
	status := figures(in)
	status.Conditions, _ = conditions.ReplicaSet.Set(status.Conditions, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	}, in.Now)
	return status
}

// onlyFiguresDiffer reports whether two statuses differ only in numbers.
func onlyFiguresDiffer(a, b appsv1.ReplicaSetStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && apiequality.Semantic.DeepEqual(a.Conditions, b.Conditions)
}

// isReached reports whether the figures are those asked for: that must be reported without delay.
func isReached(in Input, status appsv1.ReplicaSetStatus) bool {
	replicas := replicasOf(in.ReplicaSet)
	return status.Replicas == replicas && status.AvailableReplicas == replicas && *status.TerminatingReplicas == 0
}
