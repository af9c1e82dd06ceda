package podfeed

import (
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/quota"
)

// Trim keeps of a Pod and of a Node what the controllers decide on, and of any other object all but the managed
// fields: the cache holds every one of the cluster. It is a cache transform; a controller that reads more of them
// adds it here.
func Trim(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		return trimPod(object), nil
	case *corev1.Node:
		return trimNode(object), nil
	}
	if meta, ok := object.(metav1.Object); ok && len(meta.GetManagedFields()) > 0 {
		meta.SetManagedFields(nil)
	}
	return object, nil
}

// trimPod changes the Pod itself, which no reader has seen yet.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	like := shapeOf(pod)
	affinity := keptAffinity(pod)
	pod.ObjectMeta = metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		Labels: pod.Labels, Annotations: keptAnnotations(pod.Annotations), OwnerReferences: pod.OwnerReferences,
		Finalizers: pod.Finalizers, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
	}
	pod.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, Hostname: pod.Spec.Hostname, Subdomain: pod.Spec.Subdomain,
		Containers: like.ports, InitContainers: like.requests, Resources: like.amounts,
		Volumes: claiming(pod.Spec.Volumes), Affinity: affinity,
		PriorityClassName:     shared(pod.Spec.PriorityClassName),
		ActiveDeadlineSeconds: pod.Spec.ActiveDeadlineSeconds,
		ResourceClaims:        pod.Spec.ResourceClaims,
	}
	status := corev1.PodStatus{Phase: shared(pod.Status.Phase), StartTime: pod.Status.StartTime,
		PodIP: pod.Status.PodIP, PodIPs: pod.Status.PodIPs, QOSClass: shared(pod.Status.QOSClass),
		ResourceClaimStatuses: pod.Status.ResourceClaimStatuses}
	if ofJob(pod) {
		status.Conditions = pod.Status.Conditions
		status.ContainerStatuses = ends(pod.Status.ContainerStatuses)
		status.InitContainerStatuses = ends(pod.Status.InitContainerStatuses)
	} else {
		status.Conditions = keptConditions(pod.Status.Conditions)
		status.ContainerStatuses = restarts(pod.Status.ContainerStatuses)
	}
	pod.Status = status
	return pod
}

func keptAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range annotations {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

func keptAffinity(pod *corev1.Pod) *corev1.Affinity {
	var kept *corev1.Affinity
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "DaemonSet" &&
		pod.Spec.NodeName == "" {
		kept = nodeTerms(pod.Spec.Affinity)
	}
	if quota.CrossesNamespaces(pod.Spec.Affinity) {
		kept = crossing(kept)
	}
	return kept
}

func keptConditions(all []corev1.PodCondition) []corev1.PodCondition {
	const most = 3
	var kept []corev1.PodCondition
	for _, condition := range all {
		if condition.Type == corev1.PodReady || condition.Type == corev1.PodInitialized ||
			condition.Type == corev1.DisruptionTarget {
			if kept == nil {
				kept = make([]corev1.PodCondition, 0, min(most, len(all)))
			}
			kept = append(kept, condition)
		}
	}
	return kept
}

// restarts keeps of containers how often they have started again.
func restarts(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		if statuses[i].RestartCount > 0 {
			kept = append(kept, corev1.ContainerStatus{RestartCount: statuses[i].RestartCount})
		}
	}
	return kept
}

// claiming keeps the volumes that name a claim, or whose claim is made for the Pod; most Pods have none.
func claiming(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		source := &volumes[i].VolumeSource
		if source.Ephemeral != nil || source.PersistentVolumeClaim != nil {
			kept = append(kept, corev1.Volume{Name: volumes[i].Name, VolumeSource: corev1.VolumeSource{
				Ephemeral: source.Ephemeral, PersistentVolumeClaim: source.PersistentVolumeClaim}})
		}
	}
	return kept
}

// nodeTerms keeps of an affinity the required terms about nodes: a daemon Pod names its node by them until it is
// bound.
func nodeTerms(affinity *corev1.Affinity) *corev1.Affinity {
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: affinity.NodeAffinity.
			RequiredDuringSchedulingIgnoredDuringExecution,
	}}
}

func trimNode(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints, PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs},
		Status: corev1.NodeStatus{Conditions: readiness(node.Status.Conditions),
			VolumesInUse: node.Status.VolumesInUse, VolumesAttached: node.Status.VolumesAttached},
	}
}

// readiness keeps of a node's conditions whether it is ready, without the time, which changes with each report.
func readiness(all []corev1.NodeCondition) []corev1.NodeCondition {
	for i := range all {
		if all[i].Type == corev1.NodeReady {
			return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: all[i].Status}}
		}
	}
	return nil
}

// annotations are those that are kept.
var annotations = []string{corev1.PodDeletionCost, batchv1.JobCompletionIndexAnnotation,
	batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation}

// ofJob reports whether a Job may have to decide what the Pod's end means.
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

// shared returns the same text in memory that all Pods share.
func shared[T ~string](text T) T { return T(unique.Make(string(text)).Value()) }
