package podfeed

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Strip keeps of a Pod what the controllers decide on, and of any other object all but the managed fields: the cache
// holds every Pod of the cluster. It is a cache transform; a controller that reads more of a Pod adds it here.
func Strip(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return stripPod(pod), nil
	}
	if meta, ok := object.(metav1.Object); ok && len(meta.GetManagedFields()) > 0 {
		meta.SetManagedFields(nil)
	}
	return object, nil
}

func stripPod(pod *corev1.Pod) *corev1.Pod {
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: pod.Labels, OwnerReferences: pod.OwnerReferences, Finalizers: pod.Finalizers,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if cost, ok := pod.Annotations[corev1.PodDeletionCost]; ok {
		stripped.Annotations = map[string]string{corev1.PodDeletionCost: cost}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			stripped.Status.Conditions = []corev1.PodCondition{condition}
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.RestartCount > 0 {
			stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses,
				corev1.ContainerStatus{RestartCount: container.RestartCount})
		}
	}
	return stripped
}
