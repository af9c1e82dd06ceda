// Package ipaddress is the resource IPAddress of group networking.k8s.io: one address, and the object that has it.
// There is one for each cluster IP of a Service.
//
//keelson:decision
package ipaddress

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the IPAddress, whose name is the address.
var Resource = resource.Resource[*networkingv1.IPAddress]{
	Group:         networkingv1.GroupName,
	Name:          "ipaddresses",
	Singular:      "ipaddress",
	ShortNames:    []string{"ip"},
	ClusterScoped: true,
	New:           func() *networkingv1.IPAddress { return &networkingv1.IPAddress{} },
	NewList:       func() runtime.Object { return &networkingv1.IPAddressList{} },
	Spec:          resource.PartOf(func(a *networkingv1.IPAddress) *networkingv1.IPAddressSpec { return &a.Spec }),
	// The field's addresses do not count their generation.
	NoGeneration: true,
	Strategy: resource.Strategy[*networkingv1.IPAddress]{
		Name: validName, Validate: Validate, ValidateUpdate: ValidateUpdate,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*networkingv1.IPAddress](),
		resource.Column("ParentRef", "string", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"], parentCell),
		resource.AgeColumn[*networkingv1.IPAddress](),
	),
}

var parentPath = field.NewPath("spec", "parentRef")

// validName wants the one way in which an address is written.
func validName(name string, _ bool) []string {
	ip, err := netip.ParseAddr(name)
	switch {
	case err != nil || ip.Zone() != "":
		return []string{"must be a valid IP address"}
	case ip.Is4In6() || ip.String() != name:
		return []string{"must be an IP address in canonical form"}
	}
	return nil
}

// Validate returns what is wrong with an address: it belongs to an object.
func Validate(a *networkingv1.IPAddress) field.ErrorList {
	parent := a.Spec.ParentRef
	if parent == nil {
		return field.ErrorList{field.Required(parentPath, "")}
	}
	errs := fieldcheck.Optional(parent.Group, parentPath.Child("group"), validation.IsDNS1123Subdomain)
	errs = append(errs, fieldcheck.Required(parent.Resource, parentPath.Child("resource"),
		content.IsPathSegmentName)...)
	errs = append(errs, fieldcheck.Required(parent.Name, parentPath.Child("name"), content.IsPathSegmentName)...)
	return append(errs, fieldcheck.Optional(parent.Namespace, parentPath.Child("namespace"),
		validation.IsDNS1123Label)...)
}

// ValidateUpdate returns what is wrong with a as the successor of old: an address stays with its object.
func ValidateUpdate(a, old *networkingv1.IPAddress) field.ErrorList {
	return append(Validate(a), fieldcheck.Immutable(a.Spec.ParentRef, old.Spec.ParentRef, parentPath)...)
}

// parentCell is resource.group/namespace/name, of which only the resource and the name are always there.
func parentCell(a *networkingv1.IPAddress) any {
	parent := a.Spec.ParentRef
	if parent == nil {
		return ""
	}
	shown := parent.Resource
	if parent.Group != "" {
		shown += "." + parent.Group
	}
	if parent.Namespace != "" {
		shown += "/" + parent.Namespace
	}
	return shown + "/" + parent.Name
}
