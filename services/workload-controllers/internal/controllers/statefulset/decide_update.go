package statefulset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
)

// update ends Pods of an outdated revision, the highest ordinal first, so that no more than maxUnavailable are
// unavailable, whatever made them so. One that is unavailable already goes at no cost.
func (w *work) update() {
	most := w.maxUnavailable()
	budget := most - (w.end - w.start)
	for _, pod := range w.pods {
		if w.isAvailable(pod) {
			budget++
		}
	}
	underway, above := 0, w.end
	for _, ordinal := range slices.Backward(w.filled) {
		underway += above - ordinal - 1 // those in between have no Pod
		above = ordinal
		if ordinal < w.partition() || underway >= most {
			return
		}
		pod := w.pods[ordinal]
		available := w.isAvailable(pod)
		switch {
		case w.isUpToDate(pod) || w.isGoing(pod):
			if !available {
				underway++
			}
		case !available:
			w.delete(pod, ReasonOutdated)
			underway++
		case budget > 0:
			w.delete(pod, ReasonOutdated)
			budget--
			underway++
		}
	}
}

// isGoing reports whether a Pod will be gone without the update.
func (w *work) isGoing(pod *corev1.Pod) bool {
	return !podview.IsActive(pod) || w.deleted[pod.Name]
}

// partition is the first ordinal that an update reaches.
func (w *work) partition() int {
	rolling := w.set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return int(*rolling.Partition)
}

// maxUnavailable is how many of the ordinals may be without an available Pod during an update; at least one.
func (w *work) maxUnavailable() int {
	rolling := w.set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicasOf(w.set), true)
	if err != nil {
		return 1 // the apiserver refuses such a value
	}
	return max(1, most)
}
