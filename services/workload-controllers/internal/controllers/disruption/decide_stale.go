package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// announced is how long a Pod may say that it is about to be disrupted before it is seen to go. Then the announcement
// is taken back: whoever made it has given up.
const announced = 2 * time.Minute

// staleAt is when the Pod's DisruptionTarget is to be taken back; false where it stands. What its own node ends, and
// what has ended, is told the truth for good.
func staleAt(pod *corev1.Pod) (time.Time, bool) {
	target := podview.Condition(pod, corev1.DisruptionTarget)
	if target == nil || target.Status != corev1.ConditionTrue || pod.DeletionTimestamp != nil ||
		target.Reason == corev1.PodReasonTerminationByKubelet || podview.IsTerminal(pod) {
		return time.Time{}, false
	}
	return target.LastTransitionTime.Add(announced), true
}
