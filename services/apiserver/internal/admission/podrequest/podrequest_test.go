package podrequest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// DEP-214: a resize is held to ranges and quotas as a new Pod is; no other write says what a Pod asks for.
func TestSizes(t *testing.T) {
	for _, row := range []struct {
		subresource string
		operation   admission.Operation
		want        bool
	}{
		{"", admission.Create, true}, {"", admission.Update, false}, {"resize", admission.Update, true},
		{"status", admission.Update, false}, {"eviction", admission.Create, false},
	} {
		a := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "ns", "name",
			schema.GroupVersionResource{Resource: "pods"}, row.subresource, row.operation, nil, false, nil)
		if got := Sizes(a); got != row.want {
			t.Errorf("%s of %q: %t", row.operation, row.subresource, got)
		}
	}
}
