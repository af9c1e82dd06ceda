// Package ingressclass is the resource IngressClass of group networking.k8s.io: which controller an Ingress is for.
//
//keelson:decision
package ingressclass

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = networkingv1.IngressClassSpec{}.SwaggerDoc()

// Resource is the IngressClass.
var Resource = resource.Resource[*networkingv1.IngressClass]{
	Group:         networkingv1.GroupName,
	Name:          "ingressclasses",
	Singular:      "ingressclass",
	ClusterScoped: true,
	New:           func() *networkingv1.IngressClass { return &networkingv1.IngressClass{} },
	NewList:       func() runtime.Object { return &networkingv1.IngressClassList{} },
	Default:       Default,
	Spec: resource.PartOf(func(c *networkingv1.IngressClass) *networkingv1.IngressClassSpec {
		return &c.Spec
	}),
	Strategy: resource.Strategy[*networkingv1.IngressClass]{
		Validate: Validate, ValidateUpdate: ValidateUpdate,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*networkingv1.IngressClass](),
		resource.Column("Controller", "string", help["controller"],
			func(c *networkingv1.IngressClass) any { return c.Spec.Controller }),
		resource.Column("Parameters", "string", help["parameters"], parametersCell),
		resource.AgeColumn[*networkingv1.IngressClass](),
	),
}

// Default says that parameters which tell no scope belong to the whole cluster.
func Default(c *networkingv1.IngressClass) {
	if c.Spec.Parameters != nil {
		defaults.SetPtr(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

func parametersCell(c *networkingv1.IngressClass) any {
	parameters := c.Spec.Parameters
	if parameters == nil {
		return table.None
	}
	kind := parameters.Kind
	if group := parameters.APIGroup; group != nil {
		kind += "." + *group
	}
	return kind + "/" + parameters.Name
}
