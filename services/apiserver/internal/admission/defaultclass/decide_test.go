package defaultclass

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestFieldOfTheClass(t *testing.T) {
	marked := func(annotation string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{annotation: ""}}
	}
	claim := func(class *string) runtime.Object {
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: class}}
	}
	for name, row := range map[string]struct {
		field  func(runtime.Object) **string
		object runtime.Object
		want   bool
	}{
		"SET-053 a claim that says nothing": {ofClaim, claim(nil), true},
		"a claim that asks for none":        {ofClaim, claim(ptr.To("")), false},
		"a claim that names one":            {ofClaim, claim(ptr.To("gold")), false},
		"a claim that asks for none in the old way": {ofClaim, &corev1.PersistentVolumeClaim{
			ObjectMeta: marked("volume.beta.kubernetes.io/storage-class")}, false},
		"an Ingress that says nothing": {ofIngress, &networkingv1.Ingress{}, true},
		"an Ingress that names one": {ofIngress, &networkingv1.Ingress{
			Spec: networkingv1.IngressSpec{IngressClassName: ptr.To("a")}}, false},
		"an Ingress that names one in the old way": {ofIngress, &networkingv1.Ingress{
			ObjectMeta: marked("kubernetes.io/ingress.class")}, false},
		"no claim":   {ofClaim, &networkingv1.Ingress{}, false},
		"no Ingress": {ofIngress, claim(nil), false},
	} {
		field := row.field(row.object)
		if (field != nil) != row.want {
			t.Errorf("%s: %t, want %t", name, field != nil, row.want)
		}
		if field != nil && *field != nil {
			t.Errorf("%s: the field names %q already", name, **field)
		}
	}
}
