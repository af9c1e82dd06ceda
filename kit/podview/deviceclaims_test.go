package podview

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
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
	for name, want := range map[string]bool{"gpu": true, "p-made-x": true, "other": false, "foreign": false,
		"": false} {
		if got := UsesResourceClaim(pod, name); got != want {
			t.Errorf("uses %q: %t", name, got)
		}
	}
}

func named(claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim,
			ResourceClaimName: &claim})
	}
	return pod
}

// templated asks for a claim by a template; its status says that it is the one of the name, or that none is needed.
func templated(made *string) *corev1.Pod {
	pod := named()
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}
	if made != nil {
		status := corev1.PodResourceClaimStatus{Name: "gpu"}
		if *made != "" {
			status.ResourceClaimName = made
		}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{status}
	}
	return pod
}

func claim(name string, changes ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func allocated(c *resourcev1.ResourceClaim) { c.Status.Allocation = &resourcev1.AllocationResult{} }

func madeFor(uid types.UID) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		pod := named()
		pod.UID = uid
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod,
			corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
}

func leaving(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }

// Whatever becomes of its claims, something keeps a Pod that claims devices from every node, and what it is is said.
func TestLacksDevices(t *testing.T) {
	for name, row := range map[string]struct {
		pod    *corev1.Pod
		claims []*resourcev1.ResourceClaim
		want   string
	}{
		"claims nothing": {named(), nil, ""},
		"no claim":       {named("gpu"), nil, "ResourceClaim gpu does not exist"},
		"of another's name": {named("gpu"), []*resourcev1.ResourceClaim{claim("nic")},
			"ResourceClaim gpu does not exist"},
		"not allocated": {named("gpu"), []*resourcev1.ResourceClaim{claim("gpu")},
			"ResourceClaim gpu is not allocated, and nobody in this cluster allocates devices"},
		"being deleted": {named("gpu"), []*resourcev1.ResourceClaim{claim("gpu", leaving)},
			"ResourceClaim gpu is being deleted"},
		"the second": {named("gpu", "nic"), []*resourcev1.ResourceClaim{claim("gpu", allocated)},
			"ResourceClaim nic does not exist"},
		"allocated by others": {named("gpu"), []*resourcev1.ResourceClaim{claim("gpu", allocated)}, Unprepared},
		"not made yet": {templated(nil), nil,
			"the Pod's ResourceClaim for gpu was not made yet of ResourceClaimTemplate t"},
		"made, and gone": {templated(ptr.To("p-gpu-x")), nil, "the Pod's ResourceClaim for gpu does not exist"},
		"made for another": {templated(ptr.To("c")),
			[]*resourcev1.ResourceClaim{claim("c", madeFor("q"), allocated)},
			"the Pod's ResourceClaim for gpu was made for another Pod"},
		"made": {templated(ptr.To("c")), []*resourcev1.ResourceClaim{claim("c", madeFor("p"))},
			"the Pod's ResourceClaim for gpu is not allocated, and nobody in this cluster allocates devices"},
		"made and allocated": {templated(ptr.To("c")),
			[]*resourcev1.ResourceClaim{claim("c", madeFor("p"), allocated)}, Unprepared},
		"said to be of no need": {templated(ptr.To("")), nil, Unprepared},
		"by name, for whom ever": {named("c"), []*resourcev1.ResourceClaim{claim("c", madeFor("q"), allocated)},
			Unprepared},
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
