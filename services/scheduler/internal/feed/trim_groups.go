package feed

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// trimGroup keeps the name and the selector.
func trimGroup(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Service:
		trimMeta(&o.ObjectMeta)
		o.Labels, o.Spec, o.Status = nil, corev1.ServiceSpec{Selector: o.Spec.Selector}, corev1.ServiceStatus{}
	case *corev1.ReplicationController:
		trimMeta(&o.ObjectMeta)
		o.Labels, o.Spec = nil, corev1.ReplicationControllerSpec{Selector: o.Spec.Selector}
		o.Status = corev1.ReplicationControllerStatus{}
	case *appsv1.ReplicaSet:
		trimMeta(&o.ObjectMeta)
		o.Labels, o.Spec, o.Status = nil, appsv1.ReplicaSetSpec{Selector: o.Spec.Selector}, appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		trimMeta(&o.ObjectMeta)
		o.Labels, o.Spec, o.Status = nil, appsv1.StatefulSetSpec{Selector: o.Spec.Selector}, appsv1.StatefulSetStatus{}
	}
	return object, nil // as it is: a tombstone
}

// trimNamespace keeps the name and the labels.
func trimNamespace(object any) (any, error) {
	if n, ok := object.(*corev1.Namespace); ok {
		trimMeta(&n.ObjectMeta)
		n.Spec, n.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	}
	return object, nil
}

// trimPodGroup keeps what a group of Pods is like and what it says.
func trimPodGroup(object any) (any, error) {
	if g, ok := object.(*schedulingv1beta1.PodGroup); ok {
		trimMeta(&g.ObjectMeta)
	}
	return object, nil
}
