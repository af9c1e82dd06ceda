package deployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	var a explain.Account
	d, status := in.Deployment, &plan.Status
	a.Do(len(plan.Claims.Adopt), "adopts %s", explain.Count(len(plan.Claims.Adopt), "ReplicaSet"))
	a.Do(len(plan.Claims.Release), "releases %s", explain.Count(len(plan.Claims.Release), "ReplicaSet"))
	if plan.Rollback != nil {
		a.Do(1, "answers the request to roll back (%s)", plan.Rollback.Reason)
	}
	if plan.Create != nil {
		a.Do(1, "creates ReplicaSet %s with %s (%s)", plan.Create.ReplicaSet.Name,
			explain.Count(int(sizeOf(plan.Create.ReplicaSet)), "replica"), plan.Create.Reason)
	}
	for _, update := range plan.Updates {
		if from, to := sizeOf(update.From), sizeOf(update.To); from != to {
			a.Do(1, "scales ReplicaSet %s from %d to %d (%s)", update.From.Name, from, to, update.Reason)
		}
	}
	a.Do(len(plan.Deletes), "deletes %s beyond spec.revisionHistoryLimit",
		explain.Count(len(plan.Deletes), "old ReplicaSet"))
	progress := conditions.Deployment.Find(status.Conditions, appsv1.DeploymentProgressing)
	replicas := replicasOf(d)
	switch {
	case d.DeletionTimestamp != nil:
		a.Wait(explain.Wait{Since: d.DeletionTimestamp.Time, Reason: "Deleting", For: "its deletion to finish",
			Ends: "its finalizers are gone"})
		return a
	case d.Spec.Paused:
		a.Wait(inPause(progress))
	}
	if left := lingering(in); left > 0 && len(plan.Updates) == 0 && plan.Create == nil {
		a.Wait(explain.Wait{Reason: "Recreate", For: explain.Count(left, "old Pod") + " to end",
			Ends: "all of them have ended: the strategy Recreate makes new ones only then"})
	}
	if status.UpdatedReplicas < replicas || status.AvailableReplicas < replicas || status.Replicas > replicas {
		a.Wait(underWay(in, plan, progress))
	}
	a.Settled = fmt.Sprintf("%s of the current template available, and none of another",
		explain.Count(int(status.AvailableReplicas), "Pod"))
	return a
}

func inPause(progress *appsv1.DeploymentCondition) explain.Wait {
	w := explain.Wait{Reason: "Paused", For: "the end of its pause",
		Ends: "spec.paused is false: kubectl rollout resume"}
	if progress != nil && progress.Reason == reasonPaused {
		w.Since = progress.LastUpdateTime.Time
	}
	return w
}

// underWay describes a rollout that is not complete.
func underWay(in Input, plan Plan, progress *appsv1.DeploymentCondition) explain.Wait {
	status, replicas := &plan.Status, replicasOf(in.Deployment)
	w := explain.Wait{Reason: "Progressing", For: fmt.Sprintf(
		"%s of the current template, available and alone (updated %d, available %d, of %d in all)",
		explain.Count(int(replicas), "replica"),
		status.UpdatedReplicas, status.AvailableReplicas, status.Replicas),
		Ends: "its ReplicaSets report them: keel explain replicaset tells more"}
	if progress == nil {
		return w
	}
	w.Reason, w.Since = progress.Reason, progress.LastUpdateTime.Time
	if !plan.Wake.IsZero() {
		w.Ends += "; without progress it is reported as " + reasonTimedOut + " at " + explain.At(plan.Wake)
	}
	return w
}

// lingering counts the Pods of old ReplicaSets that have not ended, where the strategy asks for that.
func lingering(in Input) int {
	left := 0
	if in.Deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		return left
	}
	r := newRollout(in, in.ReplicaSets)
	for _, m := range r.old {
		left += in.Unfinished[m.set.UID]
	}
	return left
}
