// Package defaultclass decides which StorageClass or IngressClass objects that name none belong to.
//
//keelson:decision
package defaultclass

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageAnnotation marks a StorageClass as the default by the value "true".
const StorageAnnotation = "storageclass.kubernetes.io/is-default-class"

// Annotations mark a class as the default: one of them with the value "true" is enough.
type Annotations []string

// Those of the kinds that have a default. StorageClasses may still have the annotation of the API's beta.
var (
	Storage = Annotations{StorageAnnotation, "storageclass.beta.kubernetes.io/is-default-class"}
	Ingress = Annotations{networkingv1.AnnotationIsDefaultIngressClass}
)

// Mark reports whether the class has one of the annotations.
func (as Annotations) Mark(class metav1.Object) bool {
	has := class.GetAnnotations()
	for _, annotation := range as {
		if has[annotation] == "true" {
			return true
		}
	}
	return false
}

// Among returns the default of the classes: of several the newest, of those as new the first by name. It returns false
// where none is marked.
func Among[Class metav1.Object](classes []Class, as Annotations) (chosen Class, found bool) {
	for _, class := range classes {
		if as.Mark(class) && (!found || newer(class, chosen)) {
			chosen, found = class, true
		}
	}
	return chosen, found
}

func newer(class, than metav1.Object) bool {
	made, before := class.GetCreationTimestamp(), than.GetCreationTimestamp()
	return made.After(before.Time) || made.Equal(&before) && class.GetName() < than.GetName()
}
