package replicationcontroller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicaSetOf returns what the ReplicationController asks for and says as a ReplicaSet. They share their memory.
func replicaSetOf(rc *corev1.ReplicationController) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: rc.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{
			Replicas: rc.Spec.Replicas, MinReadySeconds: rc.Spec.MinReadySeconds,
			Selector: &metav1.LabelSelector{MatchLabels: rc.Spec.Selector},
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: rc.Status.Replicas, FullyLabeledReplicas: rc.Status.FullyLabeledReplicas,
			ReadyReplicas: rc.Status.ReadyReplicas, AvailableReplicas: rc.Status.AvailableReplicas,
			ObservedGeneration: rc.Status.ObservedGeneration,
		},
	}
	if rc.Spec.Template != nil {
		set.Spec.Template = *rc.Spec.Template
	}
	for _, c := range rc.Status.Conditions {
		set.Status.Conditions = append(set.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: c.LastTransitionTime,
		})
	}
	return set
}

// statusOf returns a ReplicaSet's status as that of a ReplicationController, which does not tell of Pods that are
// being deleted.
func statusOf(status appsv1.ReplicaSetStatus) corev1.ReplicationControllerStatus {
	own := corev1.ReplicationControllerStatus{
		Replicas: status.Replicas, FullyLabeledReplicas: status.FullyLabeledReplicas,
		ReadyReplicas: status.ReadyReplicas, AvailableReplicas: status.AvailableReplicas,
		ObservedGeneration: status.ObservedGeneration,
	}
	for _, c := range status.Conditions {
		own.Conditions = append(own.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status, Reason: c.Reason,
			Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return own
}
