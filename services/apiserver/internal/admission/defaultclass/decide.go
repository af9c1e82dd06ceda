package defaultclass

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
