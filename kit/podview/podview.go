// Package podview answers questions about a Pod from the object alone. All functions are pure and never change the Pod.
//
//keelson:decision
package podview

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Condition returns the Pod's condition of the type, or nil. The result points into the Pod.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// IsReady reports whether the Pod's Ready condition is true.
func IsReady(pod *corev1.Pod) bool {
	ready := Condition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// AvailableAt returns the instant from which the Pod counts as available when it stays ready: the start of its
// readiness plus minReady. The second result is false for a Pod that is not ready.
func AvailableAt(pod *corev1.Pod, minReady time.Duration) (time.Time, bool) {
	ready := Condition(pod, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	return ready.LastTransitionTime.Add(minReady), true
}

// IsAvailable reports whether the Pod has been ready for minReady at now. Without a minimum, a ready Pod is
// available, even if the clocks of node and caller differ.
func IsAvailable(pod *corev1.Pod, minReady time.Duration, now time.Time) bool {
	if minReady <= 0 {
		return IsReady(pod)
	}
	at, ready := AvailableAt(pod, minReady)
	return ready && !at.After(now)
}

// IsTerminal reports whether all containers have ended for good: phase Succeeded or Failed.
func IsTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsTerminating reports whether the Pod is being deleted.
func IsTerminating(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil
}

// IsActive reports whether the Pod counts as a replica: neither terminal nor being deleted.
func IsActive(pod *corev1.Pod) bool {
	return !IsTerminal(pod) && !IsTerminating(pod)
}

// IsMirror reports whether the Pod only shows a static Pod of its Node: no nodeagent runs it.
func IsMirror(pod *corev1.Pod) bool {
	_, is := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return is
}

// IsSidecar reports whether an init container is restartable, that is, keeps running beside the main containers.
func IsSidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
