package networkpolicy

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type (
	policy = networkingv1.NetworkPolicy
	port   = networkingv1.NetworkPolicyPort
	peer   = networkingv1.NetworkPolicyPeer
)

func of(edit func(*networkingv1.NetworkPolicySpec)) *policy {
	p := &policy{}
	edit(&p.Spec)
	Default(p)
	return p
}

// in allows ports or peers to come in, out to go out.
func in(ports []port, peers ...peer) *policy {
	return of(func(s *networkingv1.NetworkPolicySpec) {
		s.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: ports, From: peers}}
	})
}

func out(ports []port, peers ...peer) *policy {
	return of(func(s *networkingv1.NetworkPolicySpec) {
		s.Egress = []networkingv1.NetworkPolicyEgressRule{{Ports: ports, To: peers}}
	})
}

func block(cidr string, except ...string) peer {
	return peer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

func TestDefault(t *testing.T) {
	types := func(p *policy) []string {
		var all []string
		for _, t := range p.Spec.PolicyTypes {
			all = append(all, string(t))
		}
		return all
	}
	if got := types(of(func(*networkingv1.NetworkPolicySpec) {})); !slices.Equal(got, []string{"Ingress"}) {
		t.Errorf("a policy that says nothing: %v", got)
	}
	p := out([]port{{}})
	if got := types(p); !slices.Equal(got, []string{"Ingress", "Egress"}) {
		t.Errorf("a policy with rules for what goes out: %v", got)
	}
	if got := p.Spec.Egress[0].Ports[0].Protocol; *got != "TCP" {
		t.Errorf("protocol %v", *got)
	}
	if got := in([]port{{}}).Spec.Ingress[0].Ports[0].Protocol; *got != "TCP" {
		t.Errorf("protocol %v", *got)
	}
}

func TestValidate(t *testing.T) {
	number, name := intstr.FromInt32, intstr.FromString
	badSelector := &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	for _, row := range []struct {
		name   string
		policy *policy
		want   []string
	}{
		{"empty", in(nil), nil},
		{"bad selector", of(func(s *networkingv1.NetworkPolicySpec) { s.PodSelector = *badSelector }),
			[]string{"spec.podSelector.matchLabels: Invalid value"}},
		{"both types", of(func(s *networkingv1.NetworkPolicySpec) {
			s.PolicyTypes = []networkingv1.PolicyType{"Ingress", "Egress"}
		}), nil},
		{"three types", of(func(s *networkingv1.NetworkPolicySpec) {
			s.PolicyTypes = []networkingv1.PolicyType{"Ingress", "Egress", "Ingress"}
		}), []string{"spec.policyTypes: Invalid value"}},
		{"unknown type", of(func(s *networkingv1.NetworkPolicySpec) {
			s.PolicyTypes = []networkingv1.PolicyType{"In"}
		}),
			[]string{`spec.policyTypes[0]: Unsupported value: "In"`}},
		{"last port", in([]port{{Port: ptr.To(number(65535))}, {Port: ptr.To(name("http"))}}), nil},
		{"a port beyond", in([]port{{Port: ptr.To(number(65536))}, {Port: ptr.To(number(0))},
			{Port: ptr.To(name("a_b"))}}), []string{"spec.ingress[0].ports[0].port: Invalid value: 65536",
			"spec.ingress[0].ports[1].port: Invalid value: 0", `spec.ingress[0].ports[2].port: Invalid value: "a_b"`}},
		{"protocols", out([]port{{Protocol: ptr.To(corev1.ProtocolUDP)}, {Protocol: ptr.To(corev1.ProtocolSCTP)},
			{Protocol: ptr.To(corev1.Protocol("ICMP"))}}),
			[]string{`spec.egress[0].ports[2].protocol: Unsupported value: "ICMP"`}},
		{"a range of one", in([]port{{Port: ptr.To(number(80)), EndPort: ptr.To[int32](80)}}), nil},
		{"a range that ends before it begins", in([]port{{Port: ptr.To(number(80)), EndPort: ptr.To[int32](79)}}),
			[]string{"spec.ingress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`"}},
		{"a range that ends beyond", in([]port{{Port: ptr.To(number(80)), EndPort: ptr.To[int32](65536)}}),
			[]string{"spec.ingress[0].ports[0].endPort: Invalid value: 65536"}},
		{"ranges without a number to begin with", in([]port{{EndPort: ptr.To[int32](80)},
			{Port: ptr.To(name("http")), EndPort: ptr.To[int32](80)}}), []string{
			"spec.ingress[0].ports[0].endPort: Invalid value: 80: may not be specified when `port` is not specified",
			"spec.ingress[0].ports[1].endPort: Invalid value: 80: may not be specified when `port` is non-numeric"}},
		{"no peer", out(nil, peer{}), []string{"spec.egress[0].to[0]: Required value: must specify a peer"}},
		{"selecting peers", in(nil, peer{PodSelector: &metav1.LabelSelector{}},
			peer{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{}}), nil},
		{"bad peers", in(nil, peer{PodSelector: badSelector}, peer{NamespaceSelector: badSelector}), []string{
			"spec.ingress[0].from[0].podSelector.matchLabels: Invalid value",
			"spec.ingress[0].from[1].namespaceSelector.matchLabels: Invalid value"}},
		{"a block and a selector", in(nil, peer{PodSelector: &metav1.LabelSelector{},
			IPBlock: block("10.0.0.0/8").IPBlock}), []string{"spec.ingress[0].from[0]: Forbidden"}},
		{"a block", out(nil, block("10.0.0.0/8", "10.0.0.0/9"), block("FD00::/64", "fd00::1/128")), nil},
		{"no range", out(nil, block("")), []string{"spec.egress[0].to[0].ipBlock.cidr: Required value"}},
		{"no ranges", out(nil, block("10.0.0.0"), block("10.0.0.0/8", "10.0.0")), []string{
			`spec.egress[0].to[0].ipBlock.cidr: Invalid value: "10.0.0.0"`,
			`spec.egress[0].to[1].ipBlock.except[0]: Invalid value: "10.0.0"`}},
		{"exceptions that are none", out(nil, block("10.0.0.0/8", "10.0.0.0/8", "11.0.0.0/16", "0.0.0.0/0")), []string{
			"spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr`",
			"spec.egress[0].to[0].ipBlock.except[1]: Invalid", "spec.egress[0].to[0].ipBlock.except[2]: Invalid"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.policy), row.want...) })
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
