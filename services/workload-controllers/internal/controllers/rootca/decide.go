package rootca

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// name and key are the ConfigMap and the key in which a Pod's projected volume looks for the bundle.
	name = "kube-root-ca.crt"
	key  = "ca.crt"

	descriptionAnnotation = "kubernetes.io/description"
	description           = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal " +
		"endpoints such as the " +
		"internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of " +
		"Kubernetes clusters."
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Namespace *corev1.Namespace
	// ConfigMap is the namespace's ConfigMap; nil if there is none.
	ConfigMap *corev1.ConfigMap
	// RootCA is the PEM bundle to publish.
	RootCA string
}

// Plan names the effect of one pass: at most one of the two is set.
type Plan struct {
	Create, Update *corev1.ConfigMap
}

// Decide returns what one pass over a namespace has to do. It restores an edited ConfigMap, and keeps labels and
// annotations that others set.
func Decide(in Input) Plan {
	if leaving(in.Namespace) {
		return Plan{}
	}
	data := map[string]string{key: in.RootCA}
	if in.ConfigMap == nil {
		return Plan{Create: &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: in.Namespace.Name,
				Annotations: map[string]string{descriptionAnnotation: description},
			},
			Data: data,
		}}
	}
	if maps.Equal(in.ConfigMap.Data, data) && len(in.ConfigMap.BinaryData) == 0 &&
		in.ConfigMap.Annotations[descriptionAnnotation] == description {
		return Plan{}
	}
	restored := in.ConfigMap.DeepCopy()
	restored.Data, restored.BinaryData = data, nil
	if restored.Annotations == nil {
		restored.Annotations = map[string]string{}
	}
	restored.Annotations[descriptionAnnotation] = description
	return Plan{Update: restored}
}

func leaving(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating
}
