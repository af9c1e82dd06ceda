package nodeipam

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func node(name string, ranges ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	if n.Spec.PodCIDRs = ranges; len(ranges) > 0 {
		n.Spec.PodCIDR = ranges[0]
	}
	return n
}

var (
	four = Offer{prefix("10.244.0.0/16"), 24, prefix("10.244.3.0/24")}
	six  = Offer{prefix("fd00::/56"), 64, prefix("fd00:0:0:3::/64")}
	// full has no share left.
	full = Offer{Cluster: prefix("10.244.0.0/16"), Bits: 24}
)

func TestDecide(t *testing.T) {
	for _, row := range []struct {
		name  string
		in    Input
		want  string // what is given
		event string
		says  string // what users are told
	}{
		{"a new node", Input{Node: node("a"), Offers: []Offer{four}}, "[10.244.3.0/24]", "",
			"in its next pass gives it the Pod range 10.244.3.0/24"},
		{"of both families, in the order of the flag", Input{Node: node("a"), Offers: []Offer{six, four}},
			"[fd00:0:0:3::/64 10.244.3.0/24]", "",
			"in its next pass gives it the Pod range fd00:0:0:3::/64 and 10.244.3.0/24"},
		{"one that has its range", Input{Node: node("a", "10.244.9.0/24"), Offers: []Offer{four}}, "[]", "",
			"waits for nothing: it has the Pod range 10.244.9.0/24"},
		{"one with a range of elsewhere", Input{Node: node("a", "172.16.0.0/24"), Offers: []Offer{four}}, "[]", "",
			"waits for nothing: it has the Pod range 172.16.0.0/24; 172.16.0.0/24 is not of --cluster-cidr and is " +
				"left as it is"},
		{"one that has but one family", Input{Node: node("a", "10.244.9.0/24"), Offers: []Offer{four, six}}, "[]", "",
			"waits for nothing: it has the Pod range 10.244.9.0/24"},
		{"one whose write may be under way", Input{Node: node("a"), Held: []netip.Prefix{prefix("10.244.1.0/24")},
			Offers: []Offer{four}}, "[10.244.1.0/24]", "", "in its next pass gives it the Pod range 10.244.1.0/24"},
		{"that too where nothing is free", Input{Node: node("a"), Held: []netip.Prefix{prefix("10.244.1.0/24")},
			Offers: []Offer{full}}, "[10.244.1.0/24]", "", "in its next pass gives it the Pod range 10.244.1.0/24"},
		{"no share left", Input{Node: node("a"), Offers: []Offer{full}}, "[]",
			"Warning CIDRNotAvailable: Node has no podCIDR: all 256 shares (/24) of 10.244.0.0/16 of --cluster-cidr " +
				"are in use",
			"waits for a Pod range: all 256 shares (/24) of 10.244.0.0/16 are in use"},
		{"none of one family: it gets neither", Input{Node: node("a"), Offers: []Offer{six, full}}, "[]",
			"Warning CIDRNotAvailable: Node has no podCIDR: all 256 shares (/24) of 10.244.0.0/16",
			"waits for a Pod range: all 256 shares (/24) of 10.244.0.0/16 are in use"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := row.in.Node.DeepCopy()
			plan := Decide(row.in)
			event := ""
			for _, e := range plan.Events {
				event += e.Type + " " + e.Reason + ": " + e.Message
			}
			if fmt.Sprint(plan.Assign) != row.want || !strings.HasPrefix(event, row.event) ||
				(event == "") != (row.event == "") {
				t.Errorf("gives %v and says %q, want %s and %q", plan.Assign, event, row.want, row.event)
			}
			if says := account(row.in, plan).Explanation().Summary; says != row.says {
				t.Errorf("explains %q, want %q", says, row.says)
			}
			if !reflect.DeepEqual(before, row.in.Node) {
				t.Error("the Node was changed")
			}
		})
	}
}
