package podfeed

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/quota"
)

// Strip keeps of a Pod and of a Node what the controllers decide on, and of any other object all but the managed
// fields: the cache holds every one of the cluster. It is a cache transform; a controller that reads more of them adds
// it here.
func Strip(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		return stripPod(object), nil
	case *corev1.Node:
		return stripNode(object), nil
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
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, Hostname: pod.Spec.Hostname, Subdomain: pod.Spec.Subdomain,
			Containers: namedPorts(&pod.Spec)},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, StartTime: pod.Status.StartTime, PodIP: pod.Status.PodIP,
			PodIPs: pod.Status.PodIPs, QOSClass: shared(pod.Status.QOSClass)},
	}
	stripped.Spec.Resources, stripped.Spec.InitContainers = amounts(pod), requests(pod)
	stripped.Spec.Volumes = ephemeral(pod.Spec.Volumes)
	stripped.Spec.PriorityClassName = shared(pod.Spec.PriorityClassName)
	stripped.Spec.ActiveDeadlineSeconds = pod.Spec.ActiveDeadlineSeconds
	for _, key := range annotations {
		if value, ok := pod.Annotations[key]; ok {
			if stripped.Annotations == nil {
				stripped.Annotations = map[string]string{}
			}
			stripped.Annotations[key] = value
		}
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "DaemonSet" &&
		pod.Spec.NodeName == "" {
		stripped.Spec.Affinity = nodeTerms(pod.Spec.Affinity)
	}
	if quota.CrossesNamespaces(pod.Spec.Affinity) {
		stripped.Spec.Affinity = crossing(stripped.Spec.Affinity)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady || condition.Type == corev1.PodInitialized ||
			condition.Type == corev1.DisruptionTarget {
			stripped.Status.Conditions = append(stripped.Status.Conditions, condition)
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.RestartCount > 0 {
			stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses,
				corev1.ContainerStatus{RestartCount: container.RestartCount})
		}
	}
	if ofJob(pod) {
		stripped.Status.Conditions = pod.Status.Conditions
		stripped.Status.ContainerStatuses = ends(pod.Status.ContainerStatuses)
		stripped.Status.InitContainerStatuses = ends(pod.Status.InitContainerStatuses)
	}
	return stripped
}

// ephemeral keeps the volumes whose claims are made for the Pod; most Pods have none.
func ephemeral(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		if volumes[i].Ephemeral != nil {
			kept = append(kept, corev1.Volume{Name: volumes[i].Name,
				VolumeSource: corev1.VolumeSource{Ephemeral: volumes[i].Ephemeral}})
		}
	}
	return kept
}

// nodeTerms keeps of an affinity the required terms about nodes: a daemon Pod names its node by them until it is bound.
func nodeTerms(affinity *corev1.Affinity) *corev1.Affinity {
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: affinity.NodeAffinity.
			RequiredDuringSchedulingIgnoredDuringExecution,
	}}
}

func stripNode(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints},
	}
}

// annotations are those that are kept.
var annotations = []string{corev1.PodDeletionCost, batchv1.JobCompletionIndexAnnotation,
	batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation}

// ofJob says whether a Job may have to decide what the Pod's end means.
func ofJob(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller != nil && controller.Kind == "Job"
}

// ends keeps of containers how often and how they have ended.
func ends(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	kept := make([]corev1.ContainerStatus, 0, len(statuses))
	for _, status := range statuses {
		end := corev1.ContainerStatus{Name: status.Name, RestartCount: status.RestartCount}
		if terminated := status.State.Terminated; terminated != nil {
			end.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: terminated.ExitCode,
				FinishedAt: terminated.FinishedAt}
		}
		kept = append(kept, end)
	}
	return kept
}
