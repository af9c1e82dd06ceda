package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
)

// finish completes the plan with the status of a pass that succeeds, and its consequences.
func (w *work) finish() {
	status := w.figures(w.current, w.updated)
	status.UpdateRevision = w.plan.History.Current.Name
	status.CurrentRevision = w.current
	if replicas := int32(w.end - w.start); status.UpdatedReplicas == replicas && status.ReadyReplicas == replicas &&
		status.Replicas == replicas {
		status.CurrentRevision, status.CurrentReplicas = status.UpdateRevision, status.UpdatedReplicas
	}
	w.plan.Status = status
	w.plan.Forget = w.surplusHistory(status.CurrentRevision)
}

// figures counts the Pods as they are after the plan. current is the revision that the set is being updated from,
// updated are those of the present template.
func (w *work) figures(current string, updated revisionNames) appsv1.StatefulSetStatus {
	status := *w.set.Status.DeepCopy()
	status.ObservedGeneration = w.set.Generation
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	status.CurrentReplicas, status.UpdatedReplicas = 0, 0
	count := func(revision string) {
		if revision == current {
			status.CurrentReplicas++
		}
		if updated[revision] {
			status.UpdatedReplicas++
		}
	}
	for _, pod := range w.in.Pods {
		status.Replicas++
		if !podview.IsTerminating(pod) && !w.deleted[pod.Name] {
			count(pod.Labels[controllerrevision.HashLabel])
		}
		if w.isRunningAndReady(pod) {
			status.ReadyReplicas++
			w.countAvailable(pod, &status)
		}
	}
	for _, creation := range w.plan.Create {
		status.Replicas++
		count(creation.Pod.Labels[controllerrevision.HashLabel])
	}
	return status
}

func (w *work) countAvailable(pod *corev1.Pod, status *appsv1.StatefulSetStatus) {
	if w.isAvailable(pod) {
		status.AvailableReplicas++
	} else if at, ready := podview.AvailableAt(pod, w.minReady); ready {
		w.wakeAt(at)
	}
}

// afterFailure returns the status of a failed pass: what was observed, without what was planned.
func afterFailure(in Input, plan Plan) appsv1.StatefulSetStatus {
	w := &work{in: in, set: in.Set, minReady: minReadyOf(in.Set)}
	status := w.figures(plan.Status.CurrentRevision, revisionNames{plan.Status.UpdateRevision: true})
	status.CurrentRevision, status.UpdateRevision = plan.Status.CurrentRevision, plan.Status.UpdateRevision
	return status
}

// afterCollision returns the status if another object has the name of the plan's revision: the next pass uses
// another name.
func afterCollision(in Input) appsv1.StatefulSetStatus {
	status := *in.Set.Status.DeepCopy()
	status.CollisionCount = controllerrevision.AfterCollision(status.CollisionCount)
	return status
}
