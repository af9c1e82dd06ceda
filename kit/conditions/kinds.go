package conditions

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Standard keeps the conditions of the kinds that have no condition type of their own.
var Standard Kind[metav1.Condition, string] = func(c *metav1.Condition) Fields[string] {
	return Fields[string]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime, ObservedGeneration: c.ObservedGeneration,
	}
}

// Pod keeps the conditions of Pods.
var Pod Kind[corev1.PodCondition, corev1.PodConditionType] = func(
	c *corev1.PodCondition) Fields[corev1.PodConditionType] {
	return Fields[corev1.PodConditionType]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime, LastProbeTime: &c.LastProbeTime,
		ObservedGeneration: c.ObservedGeneration,
	}
}

// Namespace keeps the conditions of Namespaces.
var Namespace Kind[corev1.NamespaceCondition, corev1.NamespaceConditionType] = func(
	c *corev1.NamespaceCondition) Fields[corev1.NamespaceConditionType] {
	return Fields[corev1.NamespaceConditionType]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime,
	}
}

// Node keeps the conditions of Nodes. The client that sets one says when it last looked: LastHeartbeatTime is no news.
var Node Kind[corev1.NodeCondition, corev1.NodeConditionType] = func(
	c *corev1.NodeCondition) Fields[corev1.NodeConditionType] {
	return Fields[corev1.NodeConditionType]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime,
	}
}

// Deployment keeps the conditions of Deployments.
var Deployment Kind[appsv1.DeploymentCondition, appsv1.DeploymentConditionType] = func(
	c *appsv1.DeploymentCondition) Fields[appsv1.DeploymentConditionType] {
	return Fields[appsv1.DeploymentConditionType]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime, LastUpdateTime: &c.LastUpdateTime,
	}
}

// Job keeps the conditions of Jobs.
var Job Kind[batchv1.JobCondition, batchv1.JobConditionType] = func(
	c *batchv1.JobCondition) Fields[batchv1.JobConditionType] {
	return Fields[batchv1.JobConditionType]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime, LastProbeTime: &c.LastProbeTime,
	}
}

// ReplicaSet keeps the conditions of ReplicaSets.
var ReplicaSet Kind[appsv1.ReplicaSetCondition, appsv1.ReplicaSetConditionType] = func(
	c *appsv1.ReplicaSetCondition) Fields[appsv1.ReplicaSetConditionType] {
	return Fields[appsv1.ReplicaSetConditionType]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime,
	}
}

// NodeIsSilent reports whether a controller has noted that the state of the node is unknown.
func NodeIsSilent(list []corev1.NodeCondition) bool {
	ready := Node.Find(list, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionUnknown
}
