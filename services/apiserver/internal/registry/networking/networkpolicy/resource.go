// Package networkpolicy is the resource NetworkPolicy of group networking.k8s.io: which traffic Pods may have. It is
// stored for the network plugin that enforces it; Keelson's own Pod network does not.
//
//keelson:decision
package networkpolicy

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the NetworkPolicy.
var Resource = resource.Resource[*networkingv1.NetworkPolicy]{
	Group:      networkingv1.GroupName,
	Name:       "networkpolicies",
	Singular:   "networkpolicy",
	ShortNames: []string{"netpol"},
	New:        func() *networkingv1.NetworkPolicy { return &networkingv1.NetworkPolicy{} },
	NewList:    func() runtime.Object { return &networkingv1.NetworkPolicyList{} },
	Default:    Default,
	Spec: resource.PartOf(func(p *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicySpec {
		return &p.Spec
	}),
	Strategy: resource.Strategy[*networkingv1.NetworkPolicy]{Validate: Validate},
	Columns: resource.NewColumns(
		resource.NameColumn[*networkingv1.NetworkPolicy](),
		resource.Column("Pod-Selector", "string", networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"],
			func(p *networkingv1.NetworkPolicy) any { return table.Selector(&p.Spec.PodSelector) }),
		resource.AgeColumn[*networkingv1.NetworkPolicy](),
	),
}

// Default fills in the protocol of ports and which directions the policy is about: a policy that says nothing is about
// what comes in, and about what goes out only if it has rules for that.
func Default(p *networkingv1.NetworkPolicy) {
	spec := &p.Spec
	for i := range spec.Ingress {
		defaultPorts(spec.Ingress[i].Ports)
	}
	for i := range spec.Egress {
		defaultPorts(spec.Egress[i].Ports)
	}
	if len(spec.PolicyTypes) == 0 {
		spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(spec.Egress) > 0 {
			spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

func defaultPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		defaults.SetPtr(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}
