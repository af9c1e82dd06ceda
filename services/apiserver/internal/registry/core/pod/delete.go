package pod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// graceful decides how long a deleted Pod may stay: as long as the request or else the Pod's spec says, and not at all
// if no process of it can be running. A negative time means the shortest.
func graceful(p *corev1.Pod, options *metav1.DeleteOptions) bool {
	var seconds int64
	switch {
	case p.Spec.NodeName == "" || isTerminal(p.Status.Phase):
	case options.GracePeriodSeconds != nil:
		seconds = *options.GracePeriodSeconds
	case p.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *p.Spec.TerminationGracePeriodSeconds
	}
	if seconds < 0 {
		seconds = 1
	}
	options.GracePeriodSeconds = &seconds
	return true
}

func isTerminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
