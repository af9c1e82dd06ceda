package pod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/seconds"
)

// graceful decides how long a deleted Pod may stay: as long as the request or else the Pod's spec says, and not at all
// if no process of it can be running. A negative time means the shortest, one beyond what times can hold the longest.
func graceful(p *corev1.Pod, options *metav1.DeleteOptions) bool {
	var grace int64
	switch {
	case p.Spec.NodeName == "" || isTerminal(p.Status.Phase):
	case options.GracePeriodSeconds != nil:
		grace = *options.GracePeriodSeconds
	case p.Spec.TerminationGracePeriodSeconds != nil:
		grace = *p.Spec.TerminationGracePeriodSeconds
	}
	if grace < 0 {
		grace = 1
	}
	grace = min(grace, seconds.Most)
	options.GracePeriodSeconds = &grace
	return true
}

func isTerminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
