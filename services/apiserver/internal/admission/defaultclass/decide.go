package defaultclass

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Annotations by which a StorageClass says that it is for claims that name none.
const (
	defaultStorage     = "storageclass.kubernetes.io/is-default-class"
	defaultStorageBeta = "storageclass.beta.kubernetes.io/is-default-class"
)

// ingressClass is the annotation that named an Ingress' class before the field did.
const ingressClass = "kubernetes.io/ingress.class"

// ofClaim returns the field that names the class of a claim; nil where the claim says something about its class (the
// empty class is an answer: none) and for what is no claim.
func ofClaim(object runtime.Object) **string {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, annotated := claim.Annotations[corev1.BetaStorageClassAnnotation]; annotated {
		return nil
	}
	return &claim.Spec.StorageClassName
}

// ofIngress returns the field that names the class of an Ingress; nil where the Ingress says something about its class
// and for what is no Ingress.
func ofIngress(object runtime.Object) **string {
	ingress, ok := object.(*networkingv1.Ingress)
	if !ok || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, annotated := ingress.Annotations[ingressClass]; annotated {
		return nil
	}
	return &ingress.Spec.IngressClassName
}

// pick returns the class of objects that name none: of several defaults the newest, of those the first by name. It
// returns nil where no class has one of the annotations with the value "true".
func pick(classes []metav1.Object, annotations []string) metav1.Object {
	var chosen metav1.Object
	for _, class := range classes {
		if isDefault(class, annotations) && (chosen == nil || newer(class, chosen)) {
			chosen = class
		}
	}
	return chosen
}

func isDefault(class metav1.Object, annotations []string) bool {
	for _, annotation := range annotations {
		if class.GetAnnotations()[annotation] == "true" {
			return true
		}
	}
	return false
}

func newer(class, than metav1.Object) bool {
	made, before := class.GetCreationTimestamp(), than.GetCreationTimestamp()
	return made.After(before.Time) || made.Equal(&before) && class.GetName() < than.GetName()
}
