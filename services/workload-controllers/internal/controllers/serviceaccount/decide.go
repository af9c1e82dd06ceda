package serviceaccount

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// name is the ServiceAccount of Pods that name none.
const name = "default"

// Input is all that a decision depends on.
type Input struct {
	Namespace *corev1.Namespace
	// Exists reports whether the namespace has the ServiceAccount.
	Exists bool
}

// Decide returns the ServiceAccount to create, or nil. A namespace that is being deleted gets none: nothing new may
// be created in it.
func Decide(in Input) *corev1.ServiceAccount {
	if in.Exists || leaving(in.Namespace) {
		return nil
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: in.Namespace.Name}}
}

func leaving(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating
}
