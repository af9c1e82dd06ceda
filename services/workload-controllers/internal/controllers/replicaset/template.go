package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/workload-controllers/internal/adopt"
)

// owner returns the ReplicaSet as one that claims Pods.
func owner(set *appsv1.ReplicaSet, selector labels.Selector) adopt.Owner {
	return adopt.Owner{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Selector: selector, Deleting: set.DeletionTimestamp != nil,
	}
}

// prototype returns what every Pod of the ReplicaSet is created from. It shares the template's maps and slices.
func prototype(set *appsv1.ReplicaSet, owner adopt.Owner) *corev1.Pod {
	template := &set.Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: set.Name + "-", Namespace: set.Namespace,
			Labels: template.Labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{adopt.Reference(owner)},
		},
		Spec: template.Spec,
	}
}
