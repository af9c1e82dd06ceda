// Package servicecidr is the resource ServiceCIDR of group networking.k8s.io: ranges that cluster IPs are given from.
//
//keelson:decision
package servicecidr

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/resource"
)

// maxRanges is one of each family.
const maxRanges = 2

var rangesPath = field.NewPath("spec", "cidrs")

// Resource is the ServiceCIDR with its /status.
var Resource = resource.Resource[*networkingv1.ServiceCIDR]{
	Group:         networkingv1.GroupName,
	Name:          "servicecidrs",
	Singular:      "servicecidr",
	ClusterScoped: true,
	New:           func() *networkingv1.ServiceCIDR { return &networkingv1.ServiceCIDR{} },
	NewList:       func() runtime.Object { return &networkingv1.ServiceCIDRList{} },
	Spec:          resource.PartOf(func(c *networkingv1.ServiceCIDR) *networkingv1.ServiceCIDRSpec { return &c.Spec }),
	Status: resource.PartOf(func(c *networkingv1.ServiceCIDR) *networkingv1.ServiceCIDRStatus {
		return &c.Status
	}),
	// The field's ranges do not count their generation.
	NoGeneration: true,
	Strategy: resource.Strategy[*networkingv1.ServiceCIDR]{
		Validate: Validate, ValidateUpdate: ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*networkingv1.ServiceCIDR]{ValidateUpdate: ValidateStatusUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*networkingv1.ServiceCIDR](),
		resource.Column("CIDRs", "string", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"],
			func(c *networkingv1.ServiceCIDR) any { return strings.Join(c.Spec.CIDRs, ",") }),
		resource.AgeColumn[*networkingv1.ServiceCIDR](),
	),
}

// Validate returns what is wrong with a ServiceCIDR.
func Validate(c *networkingv1.ServiceCIDR) field.ErrorList {
	switch n := len(c.Spec.CIDRs); {
	case n == 0:
		return field.ErrorList{field.Required(rangesPath, "at least one CIDR required")}
	case n > maxRanges:
		return field.ErrorList{field.Invalid(rangesPath, c.Spec.CIDRs, "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	var families []bool
	for i, text := range c.Spec.CIDRs {
		cidr, malformed := fieldcheck.CIDR(text, rangesPath.Index(i))
		errs = append(errs, malformed...)
		if len(malformed) == 0 {
			families = append(families, cidr.Addr().Is4())
		}
	}
	if len(families) == maxRanges && families[0] == families[1] {
		errs = append(errs, field.Invalid(rangesPath, c.Spec.CIDRs,
			"may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
	}
	return errs
}

// ValidateUpdate returns what is wrong with c as the successor of old: ranges stay, but one of the other family may
// come to a single one.
func ValidateUpdate(c, old *networkingv1.ServiceCIDR) field.ErrorList {
	errs := Validate(c)
	now, was := c.Spec.CIDRs, old.Spec.CIDRs
	grown := len(was) == 1 && len(now) == maxRanges && now[0] == was[0]
	if !grown && !slices.Equal(now, was) {
		errs = append(errs, field.Invalid(rangesPath, now, "field is immutable, but for adding a range of the other "+
			"family after the first one"))
	}
	return errs
}

// ValidateStatusUpdate returns what is wrong with the conditions.
func ValidateStatusUpdate(c, _ *networkingv1.ServiceCIDR) field.ErrorList {
	return metavalidation.ValidateConditions(c.Status.Conditions, field.NewPath("status", "conditions"))
}
