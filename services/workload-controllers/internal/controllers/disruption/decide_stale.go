package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// announced is how long a Pod may have a DisruptionTarget without being deleted. After that the condition is reset:
// the component that set it has given up.
const announced = 2 * time.Minute

// staleAt returns when to reset the Pod's DisruptionTarget; false if it stays. It stays on Pods that their own node
// ends and on Pods that have ended.
func staleAt(pod *corev1.Pod) (time.Time, bool) {
	target := podview.Condition(pod, corev1.DisruptionTarget)
	if target == nil || target.Status != corev1.ConditionTrue || pod.DeletionTimestamp != nil ||
		target.Reason == corev1.PodReasonTerminationByKubelet || podview.IsTerminal(pod) {
		return time.Time{}, false
	}
	return target.LastTransitionTime.Add(announced), true
}
