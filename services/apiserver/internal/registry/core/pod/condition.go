package pod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setCondition sets the condition of its type and reports whether that changed anything. The time of the transition is
// now if the condition's status changed, else what it was.
func setCondition(status *corev1.PodStatus, condition corev1.PodCondition, now metav1.Time) bool {
	condition.LastTransitionTime = now
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		condition.LastProbeTime = old.LastProbeTime
		changed := *old != condition
		*old = condition
		return changed
	}
	status.Conditions = append(status.Conditions, condition)
	return true
}
