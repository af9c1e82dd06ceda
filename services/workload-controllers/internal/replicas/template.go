package replicas

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"keelson.dev/services/workload-controllers/internal/claim"
)

// owner returns the object as the Pods' controller. Which of them it claims is known from the index of Pods.
func owner(set *appsv1.ReplicaSet, kind schema.GroupVersionKind) claim.Owner {
	return claim.Owner{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, Kind: kind,
		Deleting: set.DeletionTimestamp != nil,
	}
}

// prototype returns what every Pod of the object is created from. It shares the template's maps and slices.
func prototype(set *appsv1.ReplicaSet, kind schema.GroupVersionKind) *corev1.Pod {
	template := &set.Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: set.Name + "-", Namespace: set.Namespace,
			Labels: template.Labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{claim.Reference(owner(set, kind))},
		},
		Spec: template.Spec,
	}
}
