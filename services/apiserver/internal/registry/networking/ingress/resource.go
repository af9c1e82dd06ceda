// Package ingress is the resource Ingress of group networking.k8s.io: how HTTP requests from outside reach Services. It
// is stored for the controller of its class; Keelson has none.
//
//keelson:decision
package ingress

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

const (
	// classAnnotation named the class before the field did.
	classAnnotation = "kubernetes.io/ingress.class"
	// shownHosts is how many hosts a row lists before it only counts them.
	shownHosts = 3
)

// Resource is the Ingress with its /status.
var Resource = resource.Resource[*networkingv1.Ingress]{
	Group:      networkingv1.GroupName,
	Name:       "ingresses",
	Singular:   "ingress",
	ShortNames: []string{"ing"},
	New:        func() *networkingv1.Ingress { return &networkingv1.Ingress{} },
	NewList:    func() runtime.Object { return &networkingv1.IngressList{} },
	Spec:       resource.PartOf(func(i *networkingv1.Ingress) *networkingv1.IngressSpec { return &i.Spec }),
	Status:     resource.PartOf(func(i *networkingv1.Ingress) *networkingv1.IngressStatus { return &i.Status }),
	Strategy: resource.Strategy[*networkingv1.Ingress]{
		Validate:         ValidateCreate,
		ValidateUpdate:   func(i, _ *networkingv1.Ingress) field.ErrorList { return Validate(i) },
		Warnings:         warnings,
		WarningsOnUpdate: func(i, _ *networkingv1.Ingress) []string { return warnings(i) },
	},
	StatusStrategy: resource.Strategy[*networkingv1.Ingress]{ValidateUpdate: ValidateStatusUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*networkingv1.Ingress](),
		resource.Column("Class", "string", "The name of the IngressClass resource that should be used for additional "+
			"configuration", func(i *networkingv1.Ingress) any {
			return ptr.Deref(i.Spec.IngressClassName,
				table.None)
		}),
		resource.Column("Hosts", "string", "Hosts that incoming requests are matched against before the ingress rule",
			hostsCell),
		resource.Column("Address", "string", "Address is a list containing ingress points for the load-balancer",
			addressCell),
		resource.Column("Ports", "string", "Ports of TLS configurations that open", portsCell),
		resource.AgeColumn[*networkingv1.Ingress](),
	),
}

func warnings(i *networkingv1.Ingress) []string {
	if _, named := i.Annotations[classAnnotation]; named {
		return []string{`annotation "` + classAnnotation +
			`" is deprecated, please use 'spec.ingressClassName' instead`}
	}
	return nil
}

func hostsCell(i *networkingv1.Ingress) any {
	var hosts []string
	for _, rule := range i.Spec.Rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	return table.First(shownHosts, hosts, "*")
}

// addressCell shows each place once, in the order of the text.
func addressCell(i *networkingv1.Ingress) any {
	var shown []string
	for _, point := range i.Status.LoadBalancer.Ingress {
		if point.IP != "" {
			shown = append(shown, point.IP)
		} else if point.Hostname != "" {
			shown = append(shown, point.Hostname)
		}
	}
	slices.Sort(shown)
	return strings.Join(slices.Compact(shown), ",")
}

func portsCell(i *networkingv1.Ingress) any {
	if len(i.Spec.TLS) > 0 {
		return "80, 443"
	}
	return "80"
}
