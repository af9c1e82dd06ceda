package podview

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview/claimtest"
)

func TestResourceClaims(t *testing.T) {
	text := func(s string) *string { return &s }
	pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "named", ResourceClaimName: text("gpu")}, {Name: "made", ResourceClaimTemplateName: text("t")},
		{Name: "skipped", ResourceClaimTemplateName: text("t")}, {Name: "new", ResourceClaimTemplateName: text("t")}}},
		Status: corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{
			{Name: "made", ResourceClaimName: text("p-made-x")}, {Name: "skipped"},
			// A client that writes a status cannot replace what the spec says.
			{Name: "named", ResourceClaimName: text("other")}, {Name: "nobody's", ResourceClaimName: text("foreign")}}}}
	for i, want := range []struct {
		name  string
		known bool
	}{{"gpu", true}, {"p-made-x", true}, {"", true}, {"", false}} {
		if name, known := ResourceClaimOf(pod, &pod.Spec.ResourceClaims[i]); name != want.name || known != want.known {
			t.Errorf("%s: %q, %t", pod.Spec.ResourceClaims[i].Name, name, known)
		}
	}
	for name, want := range map[string]bool{"gpu": true, "p-made-x": true, "other": false, "foreign": false,
		"": false} {
		if got := UsesResourceClaim(pod, name); got != want {
			t.Errorf("uses %q: %t", name, got)
		}
	}
}

// A Pod that claims devices fits no node in any state of its claims, and the reason is given.
func TestLacksDevices(t *testing.T) {
	type claims = []*resourcev1.ResourceClaim
	for name, row := range map[string]struct {
		pod    *corev1.Pod
		claims claims
		want   string
	}{
		"claims nothing": {claimtest.Claiming(), nil, ""},
		"no claim":       {claimtest.Claiming("gpu"), nil, "ResourceClaim gpu does not exist"},
		"of another's name": {claimtest.Claiming("gpu"), claims{claimtest.Claim("nic")},
			"ResourceClaim gpu does not exist"},
		"not allocated": {claimtest.Claiming("gpu"), claims{claimtest.Claim("gpu")},
			"ResourceClaim gpu is not allocated, and nobody in this cluster allocates devices"},
		"being deleted": {claimtest.Claiming("gpu"), claims{claimtest.Claim("gpu", claimtest.Leaving)},
			"ResourceClaim gpu is being deleted"},
		"the second": {claimtest.Claiming("gpu", "nic"), claims{claimtest.Claim("gpu", claimtest.Allocated)},
			"ResourceClaim nic does not exist"},
		"allocated by others": {claimtest.Claiming("gpu"),
			claims{claimtest.Claim("gpu", claimtest.Allocated)}, Unprepared},
		"not made yet": {claimtest.Templated(nil), nil,
			"the Pod's ResourceClaim for gpu was not made yet of ResourceClaimTemplate t"},
		"made, and gone": {claimtest.Templated(ptr.To("p-gpu-x")), nil,
			"the Pod's ResourceClaim for gpu does not exist"},
		"made for another": {claimtest.Templated(ptr.To("c")),
			claims{claimtest.Claim("c", claimtest.MadeFor("q"), claimtest.Allocated)},
			"the Pod's ResourceClaim for gpu was made for another Pod"},
		"made": {claimtest.Templated(ptr.To("c")), claims{claimtest.Claim("c", claimtest.MadeFor("p"))},
			"the Pod's ResourceClaim for gpu is not allocated, and nobody in this cluster allocates devices"},
		"made and allocated": {claimtest.Templated(ptr.To("c")),
			claims{claimtest.Claim("c", claimtest.MadeFor("p"), claimtest.Allocated)}, Unprepared},
		"said to be of no need": {claimtest.Templated(ptr.To("")), nil, Unprepared},
		"by name, for whom ever": {claimtest.Claiming("c"),
			claims{claimtest.Claim("c", claimtest.MadeFor("q"), claimtest.Allocated)}, Unprepared},
	} {
		got := LacksDevices(row.pod, func(name string) *resourcev1.ResourceClaim {
			for _, c := range row.claims {
				if c.Name == name {
					return c
				}
			}
			return nil
		})
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
