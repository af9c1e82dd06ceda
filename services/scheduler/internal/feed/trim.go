package feed

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trimNode keeps what the columns hold of a node.
func trimNode(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // a tombstone
	}
	return &corev1.Node{
		ObjectMeta: meta(&n.ObjectMeta),
		Spec:       corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Allocatable: n.Status.Allocatable},
	}, nil
}

// trimPod keeps what rules read of a Pod, and of a bound Pod only what it takes of its node.
func trimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	out := &corev1.Pod{
		ObjectMeta: meta(&p.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName:       p.Spec.NodeName,
			SchedulerName:  p.Spec.SchedulerName,
			Priority:       p.Spec.Priority,
			Overhead:       p.Spec.Overhead,
			Resources:      p.Spec.Resources,
			Containers:     trimContainers(p.Spec.Containers),
			InitContainers: trimContainers(p.Spec.InitContainers),
		},
		Status: corev1.PodStatus{Phase: p.Status.Phase, Resize: p.Status.Resize},
	}
	if p.Spec.NodeName != "" {
		out.Status.ContainerStatuses = trimStatuses(p.Status.ContainerStatuses)
		out.Status.InitContainerStatuses = trimStatuses(p.Status.InitContainerStatuses)
		out.Status.Conditions = pick(p.Status.Conditions, corev1.PodResizePending)
		return out, nil
	}
	out.Spec.SchedulingGates = p.Spec.SchedulingGates
	out.Spec.NodeSelector = p.Spec.NodeSelector
	out.Spec.Affinity = p.Spec.Affinity
	out.Spec.Tolerations = p.Spec.Tolerations
	out.Spec.TopologySpreadConstraints = p.Spec.TopologySpreadConstraints
	out.Status.Conditions = pick(p.Status.Conditions, corev1.PodScheduled)
	return out, nil
}

func meta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		Labels: m.Labels, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
}

func trimContainers(in []corev1.Container) []corev1.Container {
	if len(in) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(in))
	for i := range in {
		c := &in[i]
		out[i] = corev1.Container{Name: c.Name, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests},
			RestartPolicy: c.RestartPolicy, Ports: hostPorts(c.Ports)}
	}
	return out
}

func hostPorts(in []corev1.ContainerPort) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, p := range in {
		if p.HostPort > 0 {
			out = append(out, p)
		}
	}
	return out
}

func trimStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range in {
		if s := &in[i]; s.Resources != nil || s.AllocatedResources != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
		}
	}
	return out
}

func pick(in []corev1.PodCondition, want corev1.PodConditionType) []corev1.PodCondition {
	for i := range in {
		if in[i].Type == want {
			return []corev1.PodCondition{in[i]}
		}
	}
	return nil
}
