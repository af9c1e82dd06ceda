package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func node(edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec:       corev1.NodeSpec{PodCIDR: "10.1.0.0/24", ProviderID: "keelson://n1"},
		Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceCPU: quantity.MustParse("2")}},
	}
	for _, edit := range edits {
		edit(n)
	}
	Default(n)
	return n
}

func TestDefault(t *testing.T) {
	n := node()
	if n.Spec.PodCIDRs[0] != n.Spec.PodCIDR || n.Status.Allocatable.Cpu().Cmp(quantity.MustParse("2")) != 0 {
		t.Errorf("got %+v", n)
	}
	n.Status.Allocatable[corev1.ResourceCPU] = quantity.MustParse("1")
	again := n.DeepCopy()
	if Default(again); !equality.Semantic.DeepEqual(n, again) {
		t.Error("defaults are not idempotent, or change what is given")
	}
	if plural := node(func(n *corev1.Node) {
		n.Spec.PodCIDR, n.Spec.PodCIDRs = "",
			[]string{"10.2.0.0/24"}
	}); plural.Spec.PodCIDR != "10.2.0.0/24" {
		t.Errorf("podCIDR %q", plural.Spec.PodCIDR)
	}
}

func TestValidate(t *testing.T) {
	taints := func(taints ...corev1.Taint) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = taints }
	}
	for _, row := range []struct {
		name string
		edit func(*corev1.Node)
		want []string
	}{
		{"as it is", func(*corev1.Node) {}, nil},
		{"taints of one key", taints(corev1.Taint{Key: "a", Value: "b", Effect: "NoSchedule"},
			corev1.Taint{Key: "a", Effect: "NoExecute"}), nil},
		{"a taint twice", taints(corev1.Taint{Key: "a", Value: "1", Effect: "NoSchedule"},
			corev1.Taint{Key: "a", Value: "2", Effect: "NoSchedule"}),
			[]string{"spec.taints[1]: Duplicate value"}},
		{"a taint without an effect", taints(corev1.Taint{Key: "a"}),
			[]string{"spec.taints[0].effect: Required value"}},
		{"an unknown effect", taints(corev1.Taint{Key: "a", Effect: "Maybe"}),
			[]string{`spec.taints[0].effect: Unsupported value: "Maybe"`}},
		{"bad key and value", taints(corev1.Taint{Key: "a b", Value: "c d", Effect: "NoExecute"}),
			[]string{`spec.taints[0].key: Invalid value: "a b"`, `spec.taints[0].value: Invalid value: "c d"`}},
		{"a bad range", func(n *corev1.Node) { n.Spec.PodCIDR = "10.1.0.0" },
			[]string{`spec.podCIDRs[0]: Invalid value: "10.1.0.0"`}},
		{"ranges that differ", func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"10.2.0.0/24"} },
			[]string{"spec.podCIDRs[0]: Invalid value: \"10.2.0.0/24\": must match `podCIDR`"}},
		{"both families", func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"10.1.0.0/24", "fd00::/64"} }, nil},
		{"one family twice", func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"10.1.0.0/24", "10.2.0.0/24"} },
			[]string{"spec.podCIDRs: Invalid value"}},
		{"an address twice", func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"},
				{Type: "Hostname", Address: "10.0.0.1"}, {Type: "InternalIP", Address: "10.0.0.1"}}
		}, []string{"status.addresses[2]: Duplicate value"}},
		{"negative capacity", func(n *corev1.Node) {
			n.Status.Capacity = corev1.ResourceList{
				"cpu": quantity.MustParse("-1")}
		},
			[]string{`status.capacity[cpu]: Invalid value: "-1"`, `status.allocatable[cpu]: Invalid value: "-1"`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(node(row.edit)), row.want...) })
	}
}

// DEP-215: what autoscalers and operators change, and what stays.
func TestValidateUpdate(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*corev1.Node)
		want []string
	}{
		{"itself", func(*corev1.Node) {}, nil},
		{"cordoning", func(n *corev1.Node) { n.Spec.Unschedulable = true }, nil},
		{"tainting", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoExecute"}} }, nil},
		{"labels", func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }, nil},
		{"another range", func(n *corev1.Node) { n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.9.0.0/24", nil },
			[]string{`spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`}},
		{"another provider ID", func(n *corev1.Node) { n.Spec.ProviderID = "other" },
			[]string{`spec.providerID: Forbidden: node updates may not change providerID except from "" to valid`}},
		{"anything else", func(n *corev1.Node) { n.Spec.DoNotUseExternalID = "x" },
			[]string{"spec: Forbidden: node updates may only change labels, taints, or capacity"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(node(row.edit), node()), row.want...) })
	}
	t.Run("what was empty may be set", func(t *testing.T) {
		bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		fieldtest.Check(t, ValidateUpdate(node(), bare))
	})
}

func TestWritesAreApart(t *testing.T) {
	old := node()
	changed := node(func(n *corev1.Node) { n.Spec.Unschedulable = true; n.Status.Phase = corev1.NodeTerminated })
	object, status := changed.DeepCopy(), changed.DeepCopy()
	Resource.ObjectWrites().PrepareForUpdate(object, old)
	Resource.StatusWrites().PrepareForUpdate(status, old)
	if !object.Spec.Unschedulable || object.Status.Phase != "" || status.Spec.Unschedulable ||
		status.Status.Phase == "" {
		t.Errorf("the object's write made %+v, that of the status %+v", object, status)
	}
}
