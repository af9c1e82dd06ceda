package statefulset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
)

// update ends Pods of an outdated revision, the highest ordinal first, so that no more than maxUnavailable are
// unavailable, whatever made them so. One that is unavailable already goes at no cost.
func (w *work) update() {
	most := w.maxUnavailable()
	budget := most
	for ordinal := w.start; ordinal < w.end; ordinal++ {
		if !w.isAvailable(w.pods[ordinal]) {
			budget--
		}
	}
	underway := 0
	for ordinal := w.end - 1; ordinal >= max(w.start, w.partition()) && underway < most; ordinal-- {
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

// isGoing says whether there is no Pod, or one that will be gone without the update.
func (w *work) isGoing(pod *corev1.Pod) bool {
	return pod == nil || !podview.IsActive(pod) || w.deleted[pod.Name]
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
