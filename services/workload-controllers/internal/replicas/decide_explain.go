package replicas

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	var a explain.Account
	set, counts := in.ReplicaSet, in.Counts
	a.Do(len(plan.Adopt), "adopts %s", explain.Count(len(plan.Adopt), "Pod"))
	a.Do(len(plan.Release), "releases %s", explain.Count(len(plan.Release), "Pod"))
	a.Do(plan.Create, "creates %s", explain.Count(plan.Create, "Pod"))
	a.Do(len(plan.Delete), "deletes %s", explain.Count(len(plan.Delete), "Pod"))
	switch plan.Reason {
	case ReasonDeleting:
		a.Wait(explain.Wait{Since: set.DeletionTimestamp.Time, Reason: "Deleting", For: "its deletion to finish",
			Ends: "its finalizers are gone"})
		return a
	case ReasonFailing:
		a.Wait(explain.Wait{Reason: "FailingPods", For: "the time of the next Pods, since those made last have failed",
			Ends: "it is " + explain.At(plan.Wake)})
	}
	failure := conditions.ReplicaSet.Find(set.Status.Conditions, appsv1.ReplicaSetReplicaFailure)
	if failure != nil && failure.Status == corev1.ConditionTrue && plan.Create+len(plan.Delete) > 0 {
		a.Wait(explain.Wait{Since: failure.LastTransitionTime.Time, Reason: failure.Reason,
			For: "the apiserver to take its Pods: " + failure.Message, Ends: "that is put right"})
	}
	if missing := int(counts.Active - counts.Ready); missing > 0 {
		a.Wait(explain.Wait{Reason: "NotReady", For: explain.Count(missing, "Pod") + " to be ready",
			Ends: "their readiness is reported: keel explain pod tells more of each"})
	}
	if missing := int(counts.Ready - counts.Available); missing > 0 {
		a.Wait(explain.Wait{Reason: "NotAvailable",
			For:  explain.Count(missing, "Pod") + " to be ready for spec.minReadySeconds",
			Ends: "it is " + explain.At(counts.NextAvailable) + " for the first of them"})
	}
	a.Settled = explain.Count(int(counts.Available), "Pod") + " available, as many as it asks for"
	return a
}
