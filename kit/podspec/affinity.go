package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

func validateAffinity(affinity *corev1.Affinity, fldPath *field.Path) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var errs field.ErrorList
	if node := affinity.NodeAffinity; node != nil {
		errs = append(errs, validateNodeAffinity(node, fldPath.Child("nodeAffinity"))...)
	}
	if pod := affinity.PodAffinity; pod != nil {
		errs = append(errs, validatePodTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution,
			pod.PreferredDuringSchedulingIgnoredDuringExecution, fldPath.Child("podAffinity"))...)
	}
	if anti := affinity.PodAntiAffinity; anti != nil {
		errs = append(errs, validatePodTerms(anti.RequiredDuringSchedulingIgnoredDuringExecution,
			anti.PreferredDuringSchedulingIgnoredDuringExecution, fldPath.Child("podAntiAffinity"))...)
	}
	return errs
}

const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func validateNodeAffinity(affinity *corev1.NodeAffinity, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		errs = append(errs, ValidateNodeSelector(affinity.RequiredDuringSchedulingIgnoredDuringExecution,
			fldPath.Child(requiredTerms))...)
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		term, at := &affinity.PreferredDuringSchedulingIgnoredDuringExecution[i], fldPath.Child(preferredTerms).Index(i)
		errs = append(errs, validateWeight(term.Weight, at.Child("weight"))...)
		errs = append(errs, validateNodeTerm(&term.Preference, at.Child("preference"))...)
	}
	return errs
}

// ValidateNodeSelector checks a selector of nodes by their labels and fields.
func ValidateNodeSelector(selector *corev1.NodeSelector, fldPath *field.Path) field.ErrorList {
	at := fldPath.Child("nodeSelectorTerms")
	if len(selector.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(at, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i := range selector.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(&selector.NodeSelectorTerms[i], at.Index(i))...)
	}
	return errs
}

func validateNodeTerm(term *corev1.NodeSelectorTerm, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, requirement := range term.MatchExpressions {
		errs = append(errs, validateNodeExpression(requirement, fldPath.Child("matchExpressions").Index(i))...)
	}
	for i, requirement := range term.MatchFields {
		errs = append(errs, validateNodeField(requirement, fldPath.Child("matchFields").Index(i))...)
	}
	return errs
}

func validateNodeExpression(requirement corev1.NodeSelectorRequirement, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	values := fldPath.Child("values")
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(requirement.Values) == 0 {
			errs = append(errs, field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(requirement.Values) > 0 {
			errs = append(errs, field.Forbidden(values,
				"may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(requirement.Values) != 1 {
			errs = append(errs, field.Required(values,
				"must be specified single value when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		errs = append(errs, field.Invalid(fldPath.Child("operator"), requirement.Operator,
			"not a valid selector operator"))
	}
	errs = append(errs, fieldcheck.LabelKey(requirement.Key, fldPath.Child("key"))...)
	for i, value := range requirement.Values {
		errs = append(errs, fieldcheck.Messages(value, values.Index(i), validation.IsValidLabelValue(value))...)
	}
	return errs
}

// validateNodeField checks a requirement on a node's field; its name is the only field there is.
func validateNodeField(requirement corev1.NodeSelectorRequirement, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(requirement.Values) != 1 {
			errs = append(errs, field.Required(fldPath.Child("values"),
				"must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		errs = append(errs, field.Invalid(fldPath.Child("operator"), requirement.Operator,
			"not a valid selector operator"))
	}
	if requirement.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(fldPath.Child("key"), requirement.Key, "not a valid field selector key"))
	}
	for i, name := range requirement.Values {
		errs = append(errs, fieldcheck.Messages(name, fldPath.Child("values").Index(i),
			fieldcheck.DNSSubdomain(name))...)
	}
	return errs
}

func validatePodTerms(hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm,
	fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range hard {
		errs = append(errs, validatePodTerm(&hard[i], fldPath.Child(requiredTerms).Index(i))...)
	}
	for i := range soft {
		at := fldPath.Child(preferredTerms).Index(i)
		errs = append(errs, validateWeight(soft[i].Weight, at.Child("weight"))...)
		errs = append(errs, validatePodTerm(&soft[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(term *corev1.PodAffinityTerm, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.LabelSelector(term.LabelSelector, fldPath.Child("labelSelector"))
	errs = append(errs, fieldcheck.LabelSelector(term.NamespaceSelector, fldPath.Child("namespaceSelector"))...)
	for i, namespace := range term.Namespaces {
		errs = append(errs, fieldcheck.Messages(namespace, fldPath.Child("namespaces").Index(i),
			validation.IsDNS1123Label(namespace))...)
	}
	errs = append(errs, matchLabelKeys(term.MatchLabelKeys, term.LabelSelector, fldPath.Child("matchLabelKeys"))...)
	errs = append(errs, labelKeys(term.MismatchLabelKeys, term.LabelSelector, fldPath.Child("mismatchLabelKeys"))...)
	mismatched := sets.New(term.MismatchLabelKeys...)
	for i, key := range term.MatchLabelKeys {
		if mismatched.Has(key) {
			errs = append(errs, field.Invalid(fldPath.Child("matchLabelKeys").Index(i), key,
				"exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
	return append(errs, topologyKey(term.TopologyKey, fldPath.Child("topologyKey"))...)
}

// matchLabelKeys checks keys whose values the Pod itself must have. The selector may name each once, because the server
// writes it there when the Pod is created; a second time is the author's own.
func matchLabelKeys(keys []string, selector *metav1.LabelSelector, fldPath *field.Path) field.ErrorList {
	errs := labelKeys(keys, selector, fldPath)
	for i, key := range keys {
		if timesNamed(key, selector) > 1 {
			errs = append(errs, field.Invalid(fldPath.Index(i), key, "exists in both matchLabelKeys and labelSelector"))
		}
	}
	return errs
}

func timesNamed(key string, selector *metav1.LabelSelector) int {
	if selector == nil {
		return 0
	}
	times := 0
	if _, named := selector.MatchLabels[key]; named {
		times++
	}
	for _, requirement := range selector.MatchExpressions {
		if requirement.Key == key {
			times++
		}
	}
	return times
}

// labelKeys checks keys whose values are taken from the Pod itself and joined to the selector.
func labelKeys(keys []string, selector *metav1.LabelSelector, fldPath *field.Path) field.ErrorList {
	if len(keys) == 0 {
		return nil
	}
	if selector == nil {
		return field.ErrorList{field.Forbidden(fldPath, "must not be specified when labelSelector is not set")}
	}
	var errs field.ErrorList
	for i, key := range keys {
		errs = append(errs, fieldcheck.LabelKey(key, fldPath.Index(i))...)
	}
	return errs
}

func validateWeight(weight int32, fldPath *field.Path) field.ErrorList {
	if weight <= 0 || weight > 100 {
		return field.ErrorList{field.Invalid(fldPath, weight, "must be in the range 1-100")}
	}
	return nil
}
