package app

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
)

// trimNode keeps the part of a Node that its network depends on, where it is reached, and its age.
func trimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			CreationTimestamp: node.CreationTimestamp},
		Spec: corev1.NodeSpec{PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs},
		Status: corev1.NodeStatus{Addresses: node.Status.Addresses,
			DaemonEndpoints: node.Status.DaemonEndpoints, Conditions: readiness(node)},
	}, nil
}

// readiness keeps only whether the node is heard of, without the times of heartbeats.
func readiness(node *corev1.Node) []corev1.NodeCondition {
	ready := conditions.Node.Find(node.Status.Conditions, corev1.NodeReady)
	if ready == nil {
		return nil
	}
	return []corev1.NodeCondition{{Type: ready.Type, Status: ready.Status}}
}

// trimService drops the fields of a Service that the node never reads.
func trimService(object any) (any, error) {
	if s, ok := object.(*corev1.Service); ok {
		s.ManagedFields, s.Annotations = nil, nil
	}
	return object, nil
}
