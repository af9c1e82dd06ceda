package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// RecoverAnnotation is the annotation that, with the value "true" on a StatefulSet, lets an update replace a Pod of an
// outdated revision that was never ready. Without it an ordered update waits for such a Pod for ever, as the API
// specifies.
const RecoverAnnotation = "keelson.dev/replace-never-ready"

// firstReport is how long after a Pod's start its node may take to report for the first time that it is not ready.
const firstReport = 10 * time.Second

// recover deletes an unavailable Pod if the annotation asks for it.
func (w *work) recover(ordinal int, pod *corev1.Pod) {
	strategy := w.set.Spec.UpdateStrategy.Type
	if w.set.Annotations[RecoverAnnotation] == "true" && strategy == appsv1.RollingUpdateStatefulSetStrategyType &&
		w.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && ordinal >= w.partition() &&
		!w.isUpToDate(pod) && neverReady(pod) {
		w.delete(pod, ReasonNeverReady)
	}
}

// neverReady reports whether a Pod has certainly never been ready: its condition has been false since its start,
// before its containers could start. In case of doubt it may have been ready.
func neverReady(pod *corev1.Pod) bool {
	ready := podview.Condition(pod, corev1.PodReady)
	if ready == nil {
		return true
	}
	initialized := podview.Condition(pod, corev1.PodInitialized)
	if ready.Status == corev1.ConditionTrue || pod.Status.StartTime == nil || initialized == nil ||
		ready.LastTransitionTime.After(pod.Status.StartTime.Add(firstReport)) {
		return false
	}
	return initialized.Status != corev1.ConditionTrue ||
		!ready.LastTransitionTime.After(initialized.LastTransitionTime.Time)
}
