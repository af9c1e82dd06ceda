package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Scopes are what the scopes of a quota ask of an object. The zero value is an object that is in no scope.
type Scopes struct {
	// IsPod says that the object is a Pod, to which the next fields apply.
	IsPod bool
	// Terminating is set for a Pod that may only run for a time.
	Terminating bool
	BestEffort  bool
	// CrossNamespaces is set for a Pod whose place depends on Pods of other namespaces.
	CrossNamespaces bool
	PriorityClass   string
	// AttributesClasses are the VolumeAttributesClasses of a claim, joined by commas.
	AttributesClasses string
}

// PodScopes are the scopes of a Pod whose QoS class is in its status.
func PodScopes(pod *corev1.Pod) Scopes {
	return Scopes{
		IsPod: true, Terminating: pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0,
		BestEffort:      pod.Status.QOSClass == corev1.PodQOSBestEffort,
		CrossNamespaces: CrossesNamespaces(pod.Spec.Affinity), PriorityClass: pod.Spec.PriorityClassName,
	}
}

// CrossesNamespaces reports whether one of the terms about other Pods names other namespaces.
func CrossesNamespaces(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if near := affinity.PodAffinity; near != nil {
		terms = append(terms, near.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, near.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if far := affinity.PodAntiAffinity; far != nil {
		terms = append(terms, far.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, far.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, term := range weighted {
		terms = append(terms, term.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}

// ClaimScopes are the scopes of a claim: the classes that it has, asks for and is on its way to.
func ClaimScopes(claim *corev1.PersistentVolumeClaim) Scopes {
	var classes []string
	add := func(class *string) {
		if class != nil && *class != "" && !slices.Contains(classes, *class) {
			classes = append(classes, *class)
		}
	}
	add(claim.Spec.VolumeAttributesClassName)
	add(claim.Status.CurrentVolumeAttributesClassName)
	if modify := claim.Status.ModifyVolumeStatus; modify != nil {
		add(&modify.TargetVolumeAttributesClassName)
	}
	return Scopes{AttributesClasses: strings.Join(classes, ",")}
}

// Requirements are all that a quota asks of the objects that it counts.
func Requirements(spec *corev1.ResourceQuotaSpec) []corev1.ScopedResourceSelectorRequirement {
	var all []corev1.ScopedResourceSelectorRequirement
	for _, scope := range spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: scope,
			Operator: corev1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		all = append(all, spec.ScopeSelector.MatchExpressions...)
	}
	return all
}

// In reports whether a quota counts objects of these scopes.
func (s Scopes) In(spec *corev1.ResourceQuotaSpec) bool {
	for _, requirement := range Requirements(spec) {
		if !s.Meets(requirement) {
			return false
		}
	}
	return true
}

// Meets reports whether an object of these scopes meets one requirement of a quota.
func (s Scopes) Meets(requirement corev1.ScopedResourceSelectorRequirement) bool {
	if requirement.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass {
		return !s.IsPod && meets(requirement, strings.FieldsFunc(s.AttributesClasses, isComma))
	}
	if !s.IsPod {
		return false
	}
	switch requirement.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return s.Terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !s.Terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return s.BestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !s.BestEffort
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return s.CrossNamespaces
	case corev1.ResourceQuotaScopePriorityClass:
		return meets(requirement, strings.FieldsFunc(s.PriorityClass, isComma))
	}
	return false
}

func isComma(r rune) bool { return r == ',' }

// meets judges the names that an object has of a scope. As with labels, what has none is also not in any list.
func meets(requirement corev1.ScopedResourceSelectorRequirement, names []string) bool {
	listed := func(name string) bool { return slices.Contains(requirement.Values, name) }
	switch requirement.Operator {
	case corev1.ScopeSelectorOpExists:
		return len(names) > 0
	case corev1.ScopeSelectorOpDoesNotExist:
		return len(names) == 0
	case corev1.ScopeSelectorOpIn:
		return slices.ContainsFunc(names, listed)
	case corev1.ScopeSelectorOpNotIn:
		return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return !listed(name) })
	}
	return false
}
