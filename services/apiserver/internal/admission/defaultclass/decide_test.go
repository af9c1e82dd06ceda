package defaultclass

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

const (
	annotation = "storageclass.kubernetes.io/is-default-class"
	beta       = "storageclass.beta.kubernetes.io/is-default-class"
)

// class was made at a minute; marks are annotations and their values.
func class(name string, minute int, marks ...string) metav1.Object {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{},
		CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0))}}
	for i := 0; i < len(marks); i += 2 {
		c.Annotations[marks[i]] = marks[i+1]
	}
	return c
}

func TestPick(t *testing.T) {
	for _, row := range []struct {
		name    string
		classes []metav1.Object
		want    string
	}{
		{"none", nil, ""},
		{"SET-053 no default", []metav1.Object{class("a", 1), class("b", 2, annotation, "false")}, ""},
		{"SET-053 one", []metav1.Object{class("a", 1, annotation, "true"), class("b", 2)}, "a"},
		{"by the old annotation", []metav1.Object{class("a", 1, beta, "true"), class("b", 2)}, "a"},
		{"by a value that is not true", []metav1.Object{class("a", 1, annotation, "yes")}, ""},
		{"of two the newest", []metav1.Object{class("a", 1, annotation, "true"),
			class("c", 2, annotation, "true"), class("b", 0, annotation, "true")}, "c"},
		{"of two as new the first by name", []metav1.Object{class("b", 1, annotation, "true"),
			class("a", 1, annotation, "true"), class("c", 1, annotation, "true")}, "a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := ""
			if chosen := pick(row.classes, []string{annotation, beta}); chosen != nil {
				got = chosen.GetName()
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

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
