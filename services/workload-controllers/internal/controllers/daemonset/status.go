package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/pace"
)

// writeStatus completes the plan with the status, and with when to look again.
func (r *round) writeStatus() {
	status := r.figures()
	r.plan.Status = status
	r.wake(r.NextAvailable)
	if apiequality.Semantic.DeepEqual(status, r.DaemonSet.Status) {
		return
	}
	due := pace.StatusDue(r.Written, status.DesiredNumberScheduled)
	r.plan.WriteStatus = !due.After(r.Now) || status.ObservedGeneration != r.DaemonSet.Status.ObservedGeneration ||
		isReached(&status)
	if !r.plan.WriteStatus {
		r.wake(due)
	}
}

// figures returns the status as far as nodes and Pods give it; the rest is as it was.
func (r *round) figures() appsv1.DaemonSetStatus {
	status := appsv1.DaemonSetStatus{
		NumberMisscheduled: int32(len(r.strangers)),
		ObservedGeneration: r.DaemonSet.Generation,
		CollisionCount:     r.DaemonSet.Status.CollisionCount,
		Conditions:         r.DaemonSet.Status.Conditions,
	}
	for at := range r.stations {
		s := &r.stations[at]
		if s.verdict != runs {
			status.NumberMisscheduled += one(s.occupied)
			continue
		}
		status.DesiredNumberScheduled++
		status.CurrentNumberScheduled += one(s.occupied)
		status.NumberReady += one(s.ready)
		status.NumberAvailable += one(s.available)
		status.UpdatedNumberScheduled += one(s.updated)
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	return status
}

func one(counts bool) int32 {
	if counts {
		return 1
	}
	return 0
}

// isReached reports whether the figures are those asked for: nobody should have to wait to hear that.
func isReached(status *appsv1.DaemonSetStatus) bool {
	return status.NumberUnavailable == 0 && status.UpdatedNumberScheduled == status.DesiredNumberScheduled &&
		status.NumberMisscheduled == 0
}

// afterCollision returns the status when the name of the new revision belongs to another object.
func afterCollision(set *appsv1.DaemonSet) appsv1.DaemonSetStatus {
	status := *set.Status.DeepCopy()
	status.CollisionCount = controllerrevision.AfterCollision(status.CollisionCount)
	return status
}
