package replicas

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/workload-controllers/internal/pace"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/rank"
)

// burst is the most Pods that one pass creates or deletes; the rest is for the passes after it.
const burst = 500

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now        time.Time
	ReplicaSet *appsv1.ReplicaSet
	// Counts are the Pods that carry the ReplicaSet's controller reference.
	Counts podset.Counts
	// Orphans are the active Pods of the namespace that have no controller and that the selector matches.
	Orphans []*corev1.Pod
	// Candidates are the active Pods as the deletion order sees them. They are only needed when there is a surplus.
	Candidates []rank.Pod
	// Made are the Pods that there are if some have failed. They are only needed when Pods are missing.
	Made []pace.Pod
	// Written is when this process last wrote the status; zero if it has not.
	Written time.Time
}

// Plan names every effect of one pass. apply carries out its fields in order; a failure ends the pass.
type Plan struct {
	// Adopt and Release change whose the Pods are. A plan that has some has nothing else: which Pods count must be
	// settled before anything follows from their number.
	Adopt, Release []*corev1.Pod
	// Create is how many Pods to make.
	Create int
	// Delete are the Pods to end, the first to go first.
	Delete []rank.Pod
	// Status is what the status must be if all of this succeeds.
	Status appsv1.ReplicaSetStatus
	// WriteStatus reports whether the status is to be written now. A difference in figures alone may wait for Wake.
	WriteStatus bool
	// Reason says why Pods come or go.
	Reason Reason
	// Wake is when to decide again though nothing changes; the zero time means never.
	Wake time.Time
}

// Reason says why an effect is in the plan. It is used in logs and metrics.
type Reason string

// The reasons of a plan's effects.
const (
	ReasonSteady   Reason = "Steady"   // there are as many Pods as asked for
	ReasonTooFew   Reason = "TooFew"   // Pods are missing
	ReasonTooMany  Reason = "TooMany"  // Pods are in excess
	ReasonFailing  Reason = "Failing"  // Pods are missing, but those made last have failed: the next ones have to wait
	ReasonOwners   Reason = "Owners"   // whose the Pods are has to be settled first
	ReasonDeleting Reason = "Deleting" // the ReplicaSet is on its way out and leaves its Pods alone
)

// Decide says what one pass over a ReplicaSet has to do.
func Decide(in Input) Plan {
	if in.ReplicaSet.DeletionTimestamp != nil {
		return withStatus(in, Plan{Reason: ReasonDeleting})
	}
	if len(in.Orphans)+len(in.Counts.Unmatched) > 0 {
		return Plan{Adopt: in.Orphans, Release: in.Counts.Unmatched, Reason: ReasonOwners, Status: in.ReplicaSet.Status}
	}
	plan := Plan{Reason: ReasonSteady}
	switch surplus := surplus(in.ReplicaSet, in.Counts); {
	case surplus < 0:
		plan.Reason = ReasonTooFew
		if plan.Create, plan.Wake = pace.Allow(in.Made, min(-surplus, burst), in.Now); plan.Create == 0 {
			plan.Reason = ReasonFailing
		}
	case surplus > 0:
		plan.Reason, plan.Delete = ReasonTooMany, rank.First(in.Candidates, min(surplus, burst), in.Now)
	}
	return withStatus(in, plan)
}

// surplus returns by how many the active Pods exceed spec.replicas; it is negative when Pods are missing.
func surplus(set *appsv1.ReplicaSet, counts podset.Counts) int {
	return int(counts.Active) - int(replicasOf(set))
}

func replicasOf(set *appsv1.ReplicaSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}
