package defaultingressclass

import (
	networkingv1 "k8s.io/api/networking/v1"

	"keelson.dev/services/apiserver/internal/admission/newest"
)

// classAnnotation named an Ingress' class before the field did.
const classAnnotation = "kubernetes.io/ingress.class"

// needsClass tells whether a new Ingress says nothing about its class.
func needsClass(i *networkingv1.Ingress) bool {
	_, annotated := i.Annotations[classAnnotation]
	return i.Spec.IngressClassName == nil && !annotated
}

// pick returns the class of an Ingress that names none: of several defaults the newest, of those the first by name. It
// returns nil where no class is the default.
func pick(classes []*networkingv1.IngressClass) *networkingv1.IngressClass {
	chosen, _ := newest.Of(classes, func(class *networkingv1.IngressClass) bool {
		return class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
	})
	return chosen
}
