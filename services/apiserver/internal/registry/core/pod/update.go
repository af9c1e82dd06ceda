package pod

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fieldsThatMayChange is the sentence that clients know, before the difference.
const fieldsThatMayChange = "pod updates may not change fields other than " +
	"`spec.containers[*].image`,`spec.initContainers[*].image`," +
	"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n%v"

// validateSpecUpdate checks each field that may change by its own rule, and that nothing else did.
func validateSpecUpdate(spec, old *corev1.PodSpec) field.ErrorList {
	errs := validateDeadlineUpdate(spec.ActiveDeadlineSeconds, old.ActiveDeadlineSeconds,
		specPath.Child("activeDeadlineSeconds"))
	errs = append(errs, validateTolerationsUpdate(spec.Tolerations, old.Tolerations, specPath.Child("tolerations"))...)
	errs = append(errs, validateGatesUpdate(spec.SchedulingGates, old.SchedulingGates,
		specPath.Child("schedulingGates"))...)
	kept := spec.DeepCopy()
	if len(old.SchedulingGates) > 0 {
		errs = append(errs, validateGatedUpdate(kept, old)...)
	}
	if len(errs) > 0 {
		return errs
	}
	restoreMutable(kept, old)
	if !apiequality.Semantic.DeepEqual(kept, old) {
		errs = append(errs, field.Forbidden(specPath, fmt.Sprintf(fieldsThatMayChange, diff.Diff(old, kept))))
	}
	return errs
}

// restoreMutable takes the fields with rules of their own from the old spec; the containers are as many as before.
func restoreMutable(spec, old *corev1.PodSpec) {
	for i := range spec.Containers {
		spec.Containers[i].Image = old.Containers[i].Image
	}
	for i := range spec.InitContainers {
		spec.InitContainers[i].Image = old.InitContainers[i].Image
	}
	spec.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	spec.Tolerations = old.Tolerations
	spec.SchedulingGates = old.SchedulingGates
	before, after := old.TerminationGracePeriodSeconds, spec.TerminationGracePeriodSeconds
	if before != nil && *before < 0 && after != nil && *after == 1 {
		spec.TerminationGracePeriodSeconds = before
	}
}

// validateDeadlineUpdate lets a deadline be set once and brought forward.
func validateDeadlineUpdate(deadline, old *int64, fldPath *field.Path) field.ErrorList {
	switch {
	case old == nil:
		return nil
	case deadline == nil:
		return field.ErrorList{field.Invalid(fldPath, deadline, "must not update from a positive integer to nil value")}
	case *deadline > *old:
		return field.ErrorList{field.Invalid(fldPath, *deadline, "must be less than or equal to previous value")}
	}
	return nil
}

// validateTolerationsUpdate lets tolerations be added, and the time of those there are be changed.
func validateTolerationsUpdate(tolerations, old []corev1.Toleration, fldPath *field.Path) field.ErrorList {
	for _, toleration := range old {
		kept := slices.ContainsFunc(tolerations, func(other corev1.Toleration) bool {
			other.TolerationSeconds = toleration.TolerationSeconds
			return other == toleration
		})
		if !kept {
			return field.ErrorList{field.Forbidden(fldPath,
				"existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

// validateGatesUpdate lets gates only open.
func validateGatesUpdate(gates, old []corev1.PodSchedulingGate, fldPath *field.Path) field.ErrorList {
	before := sets.New(old...)
	var errs field.ErrorList
	for i, gate := range gates {
		if !before.Has(gate) {
			errs = append(errs, field.Forbidden(fldPath.Index(i),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name)))
		}
	}
	return errs
}

// validateGatedUpdate lets the choice of nodes for a Pod that still waits to be scheduled be narrowed. It takes the
// fields that it has checked from the old spec.
func validateGatedUpdate(spec, old *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	if at := specPath.Child("nodeSelector"); !includes(spec.NodeSelector, old.NodeSelector) {
		errs = append(errs, field.Invalid(at, spec.NodeSelector,
			"only additions are allowed (no mutations or deletions)"))
	}
	spec.NodeSelector = old.NodeSelector
	errs = append(errs, validateNodeAffinityUpdate(nodeAffinity(spec), nodeAffinity(old),
		specPath.Child("affinity", "nodeAffinity"))...)
	spec.Affinity = withNodeAffinity(spec.Affinity, old.Affinity)
	return errs
}

func includes(all, part map[string]string) bool {
	for key, value := range maps.All(part) {
		if other, set := all[key]; !set || other != value {
			return false
		}
	}
	return true
}

func nodeAffinity(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return &corev1.NodeAffinity{}
	}
	return spec.Affinity.NodeAffinity
}

// withNodeAffinity is the affinity with the node's part of another one.
func withNodeAffinity(affinity, other *corev1.Affinity) *corev1.Affinity {
	result := corev1.Affinity{}
	if affinity != nil {
		result = *affinity
	}
	result.NodeAffinity = nil
	if other != nil {
		result.NodeAffinity = other.NodeAffinity
	}
	if other == nil && result == (corev1.Affinity{}) {
		return nil
	}
	return &result
}

// validateNodeAffinityUpdate lets required terms be set where there were none, and grow by requirements where there
// were: each term only narrows. Preferences exclude no node and may change as they like.
func validateNodeAffinityUpdate(affinity, old *corev1.NodeAffinity, fldPath *field.Path) field.ErrorList {
	at := fldPath.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	before, after := requiredTerms(old), requiredTerms(affinity)
	if len(before) == 0 {
		return nil
	}
	if len(before) != len(after) {
		return field.ErrorList{field.Invalid(at, after,
			"no additions/deletions to non-empty NodeSelectorTerms list are allowed")}
	}
	var errs field.ErrorList
	for i := range after {
		narrowed := startsWith(after[i].MatchExpressions, before[i].MatchExpressions) &&
			startsWith(after[i].MatchFields, before[i].MatchFields)
		wasEmpty := len(before[i].MatchExpressions)+len(before[i].MatchFields) == 0
		isEmpty := len(after[i].MatchExpressions)+len(after[i].MatchFields) == 0
		if !narrowed || wasEmpty != isEmpty {
			errs = append(errs, field.Invalid(at.Index(i), after[i],
				"only additions are allowed (no mutations or deletions)"))
		}
	}
	return errs
}

func requiredTerms(affinity *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func startsWith(all, first []corev1.NodeSelectorRequirement) bool {
	return len(all) >= len(first) && apiequality.Semantic.DeepEqual(all[:len(first)], first[:len(first):len(first)])
}
