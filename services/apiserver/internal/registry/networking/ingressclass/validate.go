package ingressclass

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// maxController is the API's limit of a controller's name.
const maxController = 250

var (
	controllerPath = field.NewPath("spec", "controller")
	parametersPath = field.NewPath("spec", "parameters")
)

// Validate returns what is wrong with a defaulted class.
func Validate(c *networkingv1.IngressClass) field.ErrorList {
	var errs field.ErrorList
	if len(c.Spec.Controller) > maxController {
		errs = append(errs, field.TooLong(controllerPath, "", maxController))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(controllerPath, c.Spec.Controller)...)
	if c.Spec.Parameters != nil {
		errs = append(errs, validateParameters(c.Spec.Parameters)...)
	}
	return errs
}

// ValidateUpdate returns what is wrong with c as the successor of old: the controller stays.
func ValidateUpdate(c, old *networkingv1.IngressClass) field.ErrorList {
	return append(Validate(c), fieldcheck.Immutable(c.Spec.Controller, old.Spec.Controller, controllerPath)...)
}

func validateParameters(p *networkingv1.IngressClassParametersReference) field.ErrorList {
	var errs field.ErrorList
	if p.APIGroup != nil {
		errs = append(errs, fieldcheck.Messages(*p.APIGroup, parametersPath.Child("apiGroup"),
			validation.IsDNS1123Subdomain(*p.APIGroup))...)
	}
	errs = append(errs, fieldcheck.Required(p.Kind, parametersPath.Child("kind"), content.IsPathSegmentName)...)
	errs = append(errs, fieldcheck.Required(p.Name, parametersPath.Child("name"), content.IsPathSegmentName)...)
	errs = append(errs, fieldcheck.RequiredOneOf(ptr.Deref(p.Scope, ""), parametersPath.Child("scope"),
		networkingv1.IngressClassParametersReferenceScopeCluster,
		networkingv1.IngressClassParametersReferenceScopeNamespace)...)
	path := parametersPath.Child("namespace")
	switch ptr.Deref(p.Scope, "") {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		errs = append(errs, fieldcheck.Required(ptr.Deref(p.Namespace, ""), path, validation.IsDNS1123Label)...)
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		if p.Namespace != nil {
			errs = append(errs, field.Forbidden(path, "may not be specified when `scope` is 'Cluster'"))
		}
	}
	return errs
}
