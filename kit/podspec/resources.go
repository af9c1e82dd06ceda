package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"keelson.dev/kit/fieldcheck"
)

// containerResources are the resources without a domain that a container may ask for, besides huge pages.
var containerResources = sets.New(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isNative reports whether the name is one of the API's own, not of a vendor's domain.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// IsExtended reports whether the resource is one that nodes advertise in whole units under a domain of their own.
func IsExtended(name corev1.ResourceName) bool {
	return !isNative(name) && !strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// mayOvercommit reports whether a container may request less than its limit.
func mayOvercommit(name corev1.ResourceName) bool {
	return isNative(name) && !isHugePages(name)
}

func (s containerScope) validateContainerResources(r *corev1.ResourceRequirements,
	fldPath *field.Path) field.ErrorList {
	errs := validateResourceLists(r, fldPath, ValidateContainerResourceName)
	errs = append(errs, s.validateClaimUses(r.Claims, fldPath.Child("claims"))...)
	for _, name := range sortedNames(r.Limits) {
		limit, at := r.Limits[name], fldPath.Child("limits").Key(string(name))
		if pod := s.podLimit(name); pod != nil && limit.Cmp(*pod) > 0 {
			errs = append(errs, field.Invalid(at, limit.String(),
				fmt.Sprintf("must be less than or equal to pod limits of %s", pod)))
		}
	}
	return errs
}

func (s containerScope) podLimit(name corev1.ResourceName) *resource.Quantity {
	if s.spec.Resources == nil {
		return nil
	}
	if limit, set := s.spec.Resources.Limits[name]; set {
		return &limit
	}
	return nil
}

// validatePodResources checks the resources that the Pod has as a whole: they must cover what its containers request.
func (s containerScope) validatePodResources(fldPath *field.Path) field.ErrorList {
	r := s.spec.Resources
	if r == nil {
		return nil
	}
	errs := validateResourceLists(r, fldPath, func(name corev1.ResourceName, at *field.Path) field.ErrorList {
		if !resourcehelper.IsSupportedPodLevelResource(name) {
			supported := sets.List(resourcehelper.SupportedPodLevelResources())
			return field.ErrorList{field.NotSupported(at, name, supported)}
		}
		return nil
	})
	if len(r.Claims) > 0 {
		errs = append(errs, field.Forbidden(fldPath.Child("claims"),
			"claims may not be set for Resources at pod-level"))
	}
	if s.spec.OS != nil && s.spec.OS.Name == corev1.Windows {
		errs = append(errs, field.Forbidden(fldPath, "may not be set for a windows pod"))
	}
	sum := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *s.spec}, resourcehelper.PodResourcesOptions{})
	for _, name := range sortedNames(r.Requests) {
		request := r.Requests[name]
		if containers, set := sum[name]; set && request.Cmp(containers) < 0 {
			errs = append(errs, field.Invalid(fldPath.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s",
					containers.String())))
		}
	}
	return errs
}

type nameCheck func(corev1.ResourceName, *field.Path) field.ErrorList

// validateResourceLists checks limits and requests one by one and against each other.
func validateResourceLists(r *corev1.ResourceRequirements, fldPath *field.Path, checkName nameCheck) field.ErrorList {
	var errs field.ErrorList
	limits, requests := fldPath.Child("limits"), fldPath.Child("requests")
	for _, name := range sortedNames(r.Limits) {
		at := limits.Key(string(name))
		errs = append(errs, checkName(name, at)...)
		errs = append(errs, validateQuantity(name, r.Limits[name], at)...)
	}
	for _, name := range sortedNames(r.Requests) {
		at := requests.Key(string(name))
		errs = append(errs, checkName(name, at)...)
		errs = append(errs, validateQuantity(name, r.Requests[name], at)...)
		errs = append(errs, validateRequestAgainstLimit(name, r, fldPath)...)
	}
	if asksForHugePages(r) && !asksFor(r, corev1.ResourceCPU) && !asksFor(r, corev1.ResourceMemory) {
		errs = append(errs, field.Forbidden(fldPath, "HugePages require cpu or memory"))
	}
	return errs
}

func validateRequestAgainstLimit(name corev1.ResourceName, r *corev1.ResourceRequirements,
	fldPath *field.Path) field.ErrorList {
	request, at := r.Requests[name], fldPath.Child("requests")
	limit, limited := r.Limits[name]
	switch {
	case !limited && !mayOvercommit(name):
		return field.ErrorList{field.Required(fldPath.Child("limits"),
			"Limit must be set for non overcommitable resources")}
	case limited && !mayOvercommit(name) && request.Cmp(limit) != 0:
		return field.ErrorList{field.Invalid(at, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name,
			limit.String()))}
	case limited && request.Cmp(limit) > 0:
		return field.ErrorList{field.Invalid(at, request.String(),
			fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))}
	}
	return nil
}

// ValidateContainerResourceName wants a resource that a container may ask for.
func ValidateContainerResourceName(name corev1.ResourceName, fldPath *field.Path) field.ErrorList {
	if messages := validation.IsQualifiedName(string(name)); len(messages) > 0 {
		return fieldcheck.Messages(name, fldPath, messages)
	}
	if !strings.Contains(string(name), "/") {
		if containerResources.Has(name) || isHugePages(name) {
			return nil
		}
		return field.ErrorList{field.Invalid(fldPath, name, "must be a standard resource for containers")}
	}
	if !isNative(name) && !IsExtended(name) {
		return field.ErrorList{field.Invalid(fldPath, name, "doesn't follow extended resource name standard")}
	}
	return nil
}

func validateQuantity(name corev1.ResourceName, quantity resource.Quantity, fldPath *field.Path) field.ErrorList {
	if quantity.Sign() < 0 {
		return field.ErrorList{field.Invalid(fldPath, quantity.String(), fieldcheck.NotNegative)}
	}
	if isHugePages(name) {
		return validateHugePages(name, quantity, fldPath)
	}
	if IsExtended(name) && quantity.MilliValue()%1000 != 0 {
		return field.ErrorList{field.Invalid(fldPath, quantity.String(), "must be an integer")}
	}
	return nil
}

// validateHugePages wants a whole number of pages of the size that the resource's name gives.
func validateHugePages(name corev1.ResourceName, quantity resource.Quantity, fldPath *field.Path) field.ErrorList {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err != nil || size.Value() <= 0 || quantity.Value()%size.Value() != 0 {
		return field.ErrorList{field.Invalid(fldPath, quantity.String(), "must be an integer multiple of page size")}
	}
	return nil
}

// validateClaimUses checks that a container names only claims of its Pod, and none of them both whole and in part.
func (s containerScope) validateClaimUses(uses []corev1.ResourceClaim, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, whole, named := sets.New[corev1.ResourceClaim](), sets.New[string](), sets.New[string]()
	for i, use := range uses {
		at := fldPath.Index(i)
		switch {
		case use.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case !s.claims.Has(use.Name):
			errs = append(errs, field.NotFound(at.Child("name"), use.Name))
		case seen.Has(use) || whole.Has(use.Name) || use.Request == "" && named.Has(use.Name):
			errs = append(errs, field.Duplicate(at, use.Name))
		}
		errs = append(errs, fieldcheck.Optional(use.Request, at.Child("request"), validation.IsDNS1123Label)...)
		seen.Insert(use)
		named.Insert(use.Name)
		if use.Request == "" {
			whole.Insert(use.Name)
		}
	}
	return errs
}

func asksFor(r *corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, limited := r.Limits[name]
	_, requested := r.Requests[name]
	return limited || requested
}

func asksForHugePages(r *corev1.ResourceRequirements) bool {
	return slices.ContainsFunc(append(sortedNames(r.Limits), sortedNames(r.Requests)...), isHugePages)
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return sets.List(sets.KeySet(list))
}
