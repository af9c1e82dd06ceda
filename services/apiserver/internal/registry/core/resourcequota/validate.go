package resourcequota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

// What quotas count without naming the group of the kind.
var objectCounts = sets.New[corev1.ResourceName](corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices,
	corev1.ResourceReplicationControllers, corev1.ResourceSecrets, corev1.ResourceConfigMaps,
	corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers)

// What Pods ask for, of the resources without a domain.
var podAmounts = sets.New[corev1.ResourceName](corev1.ResourceCPU, corev1.ResourceMemory,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory)

var otherAmounts = sets.New[corev1.ResourceName](corev1.ResourceEphemeralStorage,
	corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsEphemeralStorage, corev1.ResourceRequestsStorage)

// Validate returns what is wrong with a quota.
func Validate(q *corev1.ResourceQuota) field.ErrorList {
	errs := validateAmounts(q.Spec.Hard, specPath.Child("hard"))
	errs = append(errs, validateScopes(&q.Spec)...)
	return append(errs, validateScopeSelector(&q.Spec)...)
}

// ValidateUpdate returns what is wrong with q as the successor of old: what is counted stays, how much may be does not.
func ValidateUpdate(q, old *corev1.ResourceQuota) field.ErrorList {
	errs := Validate(q)
	if !sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
		errs = append(errs, field.Invalid(specPath.Child("scopes"), q.Spec.Scopes, "field is immutable"))
	}
	return append(errs, fieldcheck.Immutable(q.Spec.ScopeSelector, old.Spec.ScopeSelector,
		specPath.Child("scopeSelector"))...)
}

// ValidateStatusUpdate returns what is wrong with the amounts in q's status.
func ValidateStatusUpdate(q, _ *corev1.ResourceQuota) field.ErrorList {
	return append(validateAmounts(q.Status.Hard, statusPath.Child("hard")),
		validateAmounts(q.Status.Used, statusPath.Child("used"))...)
}

func validateAmounts(amounts corev1.ResourceList, path *field.Path) field.ErrorList {
	errs := fieldcheck.Amounts(amounts, path)
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		at, amount := path.Key(string(name)), amounts[name]
		if !isKnown(name) {
			errs = append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
		}
		if isCount(name) && amount.MilliValue()%1000 != 0 {
			errs = append(errs, field.Invalid(at, amount.String(), "must be an integer"))
		}
	}
	return errs
}

// isKnown reports whether quotas know the resource: one of the API's, or any with a domain as its prefix.
func isKnown(name corev1.ResourceName) bool {
	plain := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return strings.Contains(string(name), "/") || objectCounts.Has(name) || podAmounts.Has(name) ||
		otherAmounts.Has(name) || strings.HasPrefix(plain, corev1.ResourceHugePagesPrefix) ||
		len(validation.IsQualifiedName(string(name))) > 0
}

// isCount reports whether the resource is a number of objects.
func isCount(name corev1.ResourceName) bool {
	return objectCounts.Has(name) || strings.HasPrefix(string(name), "count/")
}

// takes reports whether a quota of the scope can bound the resource.
func takes(scope corev1.ResourceQuotaScope, name corev1.ResourceName) bool {
	switch scope {
	case corev1.ResourceQuotaScopeBestEffort:
		return name == corev1.ResourcePods
	case corev1.ResourceQuotaScopeVolumeAttributesClass:
		return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return name == corev1.ResourcePods || podAmounts.Has(name)
	}
	return true
}

// pairs are the scopes of which no object can be in both.
var pairs = [][]corev1.ResourceQuotaScope{
	{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
	{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
}

var knownScopes = sets.New(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
	corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass,
	corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeVolumeAttributesClass)

func validateScopes(spec *corev1.ResourceQuotaSpec) field.ErrorList {
	path := specPath.Child("scopes")
	var errs field.ErrorList
	for _, scope := range spec.Scopes {
		errs = append(errs, validateScope(scope, spec, path)...)
	}
	return append(errs, validateConflicts(spec.Scopes, path)...)
}

func validateScope(scope corev1.ResourceQuotaScope, spec *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	if !knownScopes.Has(scope) {
		return field.ErrorList{field.Invalid(path, scope, "unsupported scope")}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Hard)) {
		if !takes(scope, name) {
			return field.ErrorList{field.Invalid(path, scope, "unsupported scope applied to resource")}
		}
	}
	return nil
}

func validateConflicts(scopes []corev1.ResourceQuotaScope, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, pair := range pairs {
		if sets.New(scopes...).HasAll(pair...) {
			errs = append(errs, field.Invalid(path, scopes, "conflicting scopes"))
		}
	}
	return errs
}

func validateScopeSelector(spec *corev1.ResourceQuotaSpec) field.ErrorList {
	if spec.ScopeSelector == nil {
		return nil
	}
	path := specPath.Child("scopeSelector", "matchExpressions")
	var errs field.ErrorList
	var scopes []corev1.ResourceQuotaScope
	for i, requirement := range spec.ScopeSelector.MatchExpressions {
		at := path.Index(i)
		scopes = append(scopes, requirement.ScopeName)
		errs = append(errs, validateScope(requirement.ScopeName, spec, at.Child("scopeName"))...)
		errs = append(errs, validateValues(&requirement, at)...)
	}
	return append(errs, validateConflicts(scopes, path)...)
}

// ValidateRequirement says what is wrong with a requirement of scopes, whatever it bounds.
func ValidateRequirement(requirement *corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	if !knownScopes.Has(requirement.ScopeName) {
		return field.ErrorList{field.NotSupported(path.Child("scopeName"), requirement.ScopeName,
			sets.List(knownScopes))}
	}
	return validateValues(requirement, path)
}

func validateValues(requirement *corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	values := path.Child("values")
	switch operator := requirement.Operator; {
	case operator != corev1.ScopeSelectorOpExists && hasNoValues(requirement.ScopeName):
		return field.ErrorList{field.Invalid(path.Child("operator"), operator,
			"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "+
				"ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "+
				"ResourceQuotaScopeCrossNamespacePodAffinity")}
	case operator == corev1.ScopeSelectorOpIn || operator == corev1.ScopeSelectorOpNotIn:
		if len(requirement.Values) == 0 {
			return field.ErrorList{field.Required(values,
				"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")}
		}
	case operator == corev1.ScopeSelectorOpExists || operator == corev1.ScopeSelectorOpDoesNotExist:
		if len(requirement.Values) > 0 {
			return field.ErrorList{field.Invalid(values, requirement.Values,
				"must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector")}
		}
	default:
		return field.ErrorList{field.Invalid(path.Child("operator"), operator, "not a valid selector operator")}
	}
	return nil
}

// hasNoValues reports whether objects are either in the scope or not, without a value.
func hasNoValues(scope corev1.ResourceQuotaScope) bool {
	return scope != corev1.ResourceQuotaScopePriorityClass && scope != corev1.ResourceQuotaScopeVolumeAttributesClass &&
		knownScopes.Has(scope)
}
