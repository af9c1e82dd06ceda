package noderestriction

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claiming is a Node that says it has these: ranges with a slash, a provider's name with a colon and two slashes, else
// addresses.
func claiming(name string, of ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, text := range of {
		switch {
		case strings.Contains(text, "://"):
			n.Spec.ProviderID = text
		case strings.Contains(text, "/"):
			n.Spec.PodCIDRs = append(n.Spec.PodCIDRs, text)
			n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
		default:
			n.Status.Addresses = append(
				n.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: text},
			)
		}
	}
	return n
}

// An attacker who has taken over a node gets nothing by claiming what another node has: neither its Pods' traffic, nor
// what is sent to it.
func TestClaims(t *testing.T) {
	victim := claiming("a", "10.244.1.0/24", "fd00:0:0:1::/64", "cloud://a", "192.0.2.1", "2001:db8::1", "a.example")
	silent := claiming("s", "10.244.9.0/24", "192.0.2.9")
	silent.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	old := claiming("b", "10.244.2.0/24", "cloud://b", "192.0.2.2")
	const not = `node "b" is not allowed to have the `
	for _, r := range []struct {
		name         string
		updated, old *corev1.Node
		allocator    string
		want         string
	}{
		{"nothing", claiming("b"), nil, "x", ""},
		{"its own", claiming("b", "10.244.2.0/24", "cloud://b", "192.0.2.2", "b"), nil, "", ""},
		{"what it has had", claiming("b", "10.244.2.0/24", "cloud://b", "192.0.2.2"), old, "x", ""},
		{"what it has had, in another order", claiming("b", "192.0.2.3", "192.0.2.2"), claiming("b", "192.0.2.2",
			"192.0.2.3"), "", ""},
		{"a range of another", claiming("b", "10.244.1.0/24"), nil, "",
			not + `range of Pods 10.244.1.0/24: it overlaps 10.244.1.0/24 of node "a"`},
		{"a range of another, from empty", claiming("b", "10.244.1.0/24"), claiming("b"), "",
			not + `range of Pods 10.244.1.0/24: it overlaps 10.244.1.0/24 of node "a"`},
		{"a part of it", claiming("b", "10.244.1.128/25"), nil, "",
			not + `range of Pods 10.244.1.128/25: it overlaps 10.244.1.0/24 of node "a"`},
		{"more than it", claiming("b", "10.0.0.0/8"), nil, "",
			not + `range of Pods 10.0.0.0/8: it overlaps 10.244.1.0/24 of node "a"`},
		{"the second of two", claiming("b", "10.244.2.0/24", "fd00:0:0:1::/64"), nil, "",
			not + `range of Pods fd00:0:0:1::/64: it overlaps fd00:0:0:1::/64 of node "a"`},
		{"the range of one that is silent", claiming("b", "10.244.9.0/24"), nil, "",
			not + `range of Pods 10.244.9.0/24: it overlaps 10.244.9.0/24 of node "s"`},
		{"a range beside it", claiming("b", "10.244.0.0/24"), nil, "", ""},
		{"a free range where ranges are given", claiming("b", "10.244.0.0/24"), claiming("b"), "the giver",
			`node "b" is not allowed to give itself the range of Pods 10.244.0.0/24: the giver gives Nodes theirs`},
		{"a provider's name of another", claiming("b", "cloud://a"), claiming("b"), "",
			not[:len(not)-1] + ` providerID "cloud://a": it is that of node "a"`},
		{"an address of another", claiming("b", "192.0.2.2", "192.0.2.1"), old, "",
			not + `address 192.0.2.1: it is that of node "a"`},
		{"the same, in another form", claiming("b", "::ffff:192.0.2.1"), nil, "",
			not + `address 192.0.2.1: it is that of node "a"`},
		{"of IPv6", claiming("b", "2001:DB8::1"), nil, "", not + `address 2001:db8::1: it is that of node "a"`},
		{"a name of another", claiming("b", "A.example"), nil, "", not + `address a.example: it is that of node "a"`},
		{"another's name", claiming("b", "A"), nil, "", not + `address a: it is that of node "a"`},
		{"an address of one that is silent", claiming("b", "192.0.2.9"), nil, "", ""},
		{"an address of a Pod", claiming("b", "10.244.1.7"), nil, "",
			not + `address 10.244.1.7: it is of the range of Pods 10.244.1.0/24 of node "a"`},
		{"an address of a Pod of its own", claiming("b", "10.244.2.7"), old, "", ""},
		{"nonsense", claiming("b", "x/y", "1.2.3/4"), nil, "", ""},
		{"an address that another has, too, and that it had before", claiming("b", "192.0.2.1"), claiming("b",
			"192.0.2.1"), "", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			before := []*corev1.Node{r.updated.DeepCopy(), r.old.DeepCopy(), victim.DeepCopy()}
			err := newClaims(r.updated, r.old).check("b", []corev1.Node{*old, *victim, *silent}, r.allocator)
			if r.want == "" && err != nil || r.want != "" && (err == nil || err.Error() != r.want) {
				t.Errorf("%v, want %q", err, r.want)
			}
			if !reflect.DeepEqual(before, []*corev1.Node{r.updated, r.old, victim}) {
				t.Error("the input was changed")
			}
		})
	}
	if !newClaims(old, old).none() || newClaims(old, nil).none() {
		t.Error("what is not new is claimed, or what is new is not")
	}
	lone := claiming("b")
	lone.Spec.PodCIDR = "10.244.1.0/24"
	if err := newClaims(lone, nil).check("b", []corev1.Node{*victim}, ""); err == nil {
		t.Error("a range without the list of them is not seen")
	}
}

func TestAllocatorOf(t *testing.T) {
	if got := allocatorOf("ns/lease", ""); got != "" {
		t.Errorf("a Lease that nobody holds has the allocator %q", got)
	}
	if got := allocatorOf("ns/lease", "pod-1"); got != "the controller nodeipam (pod-1, holder of the Lease ns/lease)" {
		t.Error(got)
	}
}
