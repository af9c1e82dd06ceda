package defaultingressclass

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// class was made at a minute; mark is whether it is the default.
func class(name string, minute int, mark string) *networkingv1.IngressClass {
	return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name,
		Annotations:       map[string]string{"ingressclass.kubernetes.io/is-default-class": mark},
		CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0))}}
}

func TestPick(t *testing.T) {
	for _, row := range []struct {
		name    string
		classes []*networkingv1.IngressClass
		want    string
	}{
		{"none", nil, ""},
		{"no default", []*networkingv1.IngressClass{class("a", 1, "false"), class("b", 1, "")}, ""},
		{"one", []*networkingv1.IngressClass{class("a", 2, "false"), class("b", 1, "true")}, "b"},
		{"the newest", []*networkingv1.IngressClass{class("a", 1, "true"), class("c", 2, "true"),
			class("b", 0, "true")}, "c"},
		{"as new, by name", []*networkingv1.IngressClass{class("b", 1, "true"), class("a", 1, "true")}, "a"},
	} {
		got := ""
		if chosen := pick(row.classes); chosen != nil {
			got = chosen.Name
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestNeedsClass(t *testing.T) {
	annotated := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"kubernetes.io/ingress.class": ""}}}
	for name, row := range map[string]struct {
		ingress *networkingv1.Ingress
		want    bool
	}{
		"says nothing": {&networkingv1.Ingress{}, true},
		"names one": {&networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: ptr.To("a")}},
			false},
		"names one in the old way": {annotated, false},
	} {
		if got := needsClass(row.ingress); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
