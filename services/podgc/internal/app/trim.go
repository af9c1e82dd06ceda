package app

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"keelson.dev/services/podgc/internal/collectors/nodehealth"
	"keelson.dev/services/podgc/internal/collectors/protection"
)

// trimOther is for the kinds of which the collectors may read all.
var trimOther = cache.TransformStripManagedFields()

// trim reduces an object to what the collectors decide on. The cache is not told of kinds (ByObject): it would not
// begin where an apiserver does not serve one of them (--runtime-config).
func trim(object any) (any, error) {
	switch object.(type) {
	case *corev1.Pod:
		return trimPod(object)
	case *corev1.Node:
		return trimNode(object)
	case *batchv1.Job:
		return trimJob(object)
	}
	return trimOther(object)
}

// trimPod keeps of a Pod what the collectors decide on; the cache holds every Pod of the cluster. It changes the Pod
// itself, which no reader has seen yet.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.TypeMeta, pod.ObjectMeta = metav1.TypeMeta{}, trimMeta(pod.ObjectMeta)
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName,
		Tolerations: evictionTolerations.of(pod.Spec.Tolerations), Volumes: protection.KeepClaims(pod.Spec.Volumes),
		SchedulingGroup: pod.Spec.SchedulingGroup}
	pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions}
	return pod, nil
}

func trimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Node{
		ObjectMeta: trimMeta(node.ObjectMeta),
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Conditions: node.Status.Conditions},
	}
	trimmed.Labels = nodehealth.ReadLabels(node.Labels)
	return trimmed, nil
}

func trimJob(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	return &batchv1.Job{
		ObjectMeta: trimMeta(job.ObjectMeta),
		Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: job.Spec.TTLSecondsAfterFinished},
		Status:     batchv1.JobStatus{Conditions: job.Status.Conditions},
	}, nil
}

func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds,
		OwnerReferences:            m.OwnerReferences, Finalizers: m.Finalizers,
	}
}
