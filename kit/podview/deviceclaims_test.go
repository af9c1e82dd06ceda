package podview

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestResourceClaims(t *testing.T) {
	text := func(s string) *string { return &s }
	pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "named", ResourceClaimName: text("gpu")}, {Name: "made", ResourceClaimTemplateName: text("t")},
		{Name: "skipped", ResourceClaimTemplateName: text("t")}, {Name: "new", ResourceClaimTemplateName: text("t")}}},
		Status: corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{
			{Name: "made", ResourceClaimName: text("p-made-x")}, {Name: "skipped"},
			// Whoever writes a status cannot say what the spec says.
			{Name: "named", ResourceClaimName: text("other")}, {Name: "nobody's", ResourceClaimName: text("foreign")}}}}
	for i, want := range []struct {
		name  string
		known bool
	}{{"gpu", true}, {"p-made-x", true}, {"", true}, {"", false}} {
		if name, known := ResourceClaimOf(pod, &pod.Spec.ResourceClaims[i]); name != want.name || known != want.known {
			t.Errorf("%s: %q, %t", pod.Spec.ResourceClaims[i].Name, name, known)
		}
	}
	for name, want := range map[string]bool{"gpu": true, "p-made-x": true, "other": false, "foreign": false, "": false} {
		if got := UsesResourceClaim(pod, name); got != want {
			t.Errorf("uses %q: %t", name, got)
		}
	}
}
