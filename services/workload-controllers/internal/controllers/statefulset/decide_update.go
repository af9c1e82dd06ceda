package statefulset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
)

// update deletes Pods of an outdated revision, from the highest ordinal down, so that at most maxUnavailable Pods
// are unavailable, for any reason. Deleting an unavailable Pod does not count.
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
		underway += above - ordinal - 1 // the ordinals in between have no Pod
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

// maxUnavailable returns how many ordinals may lack an available Pod during an update; at least one.
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
