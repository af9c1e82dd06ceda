package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilnet "k8s.io/utils/net"

	"keelson.dev/kit/fieldcheck"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")

	taintEffects = []corev1.TaintEffect{
		corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
	}
)

// Validate returns what is wrong with a defaulted Node.
func Validate(n *corev1.Node) field.ErrorList {
	errs := validateTaints(n.Spec.Taints, specPath.Child("taints"))
	if n.Spec.PodPreemptionPolicy != nil {
		errs = append(errs, field.Forbidden(specPath.Child("podPreemptionPolicy"),
			"needs InPlacePodVerticalScalingSchedulerPreemption, which is off"))
	}
	errs = append(errs, validatePodCIDRs(&n.Spec)...)
	return append(errs, ValidateStatus(n)...)
}

// ValidateUpdate returns what is wrong with n as the successor of old. A Node's identity stays: its Pod ranges and its
// provider's name for it are given once.
func ValidateUpdate(n, old *corev1.Node) field.ErrorList {
	errs := Validate(n)
	errs = append(errs, setOnce(len(old.Spec.PodCIDRs) == 0 || slices.Equal(n.Spec.PodCIDRs, old.Spec.PodCIDRs),
		"podCIDRs", "podCIDR")...)
	errs = append(errs, setOnce(old.Spec.ProviderID == "" || n.Spec.ProviderID == old.Spec.ProviderID, "providerID",
		"providerID")...)
	if !equality.Semantic.DeepEqual(fixed(n.Spec), fixed(old.Spec)) {
		errs = append(errs, field.Forbidden(specPath, "node updates may only change labels, taints, or capacity"))
	}
	return errs
}

// ValidateStatus returns what is wrong with a Node's status.
func ValidateStatus(n *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.NodeAddress]bool{}
	for i, address := range n.Status.Addresses {
		if seen[address] {
			errs = append(errs, field.Duplicate(statusPath.Child("addresses").Index(i), address))
		}
		seen[address] = true
	}
	errs = append(errs, fieldcheck.Amounts(n.Status.Capacity, statusPath.Child("capacity"))...)
	return append(errs, fieldcheck.Amounts(n.Status.Allocatable, statusPath.Child("allocatable"))...)
}

// fixed returns the part of a spec that no update may change.
func fixed(spec corev1.NodeSpec) corev1.NodeSpec {
	spec.Unschedulable, spec.Taints, spec.ConfigSource = false, nil, nil
	spec.PodCIDR, spec.PodCIDRs, spec.ProviderID = "", nil, ""
	return spec
}

func setOnce(kept bool, name, word string) field.ErrorList {
	if kept {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath.Child(name), `node updates may not change `+word+
		` except from "" to valid`)}
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[identity]bool{}
	for i := range taints {
		taint, path := &taints[i], path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(taint.Key, path.Child("key"))...)
		errs = append(errs, fieldcheck.Messages(taint.Value, path.Child("value"),
			validation.IsValidLabelValue(taint.Value))...)
		errs = append(errs, fieldcheck.RequiredOneOf(taint.Effect, path.Child("effect"), taintEffects...)...)
		id := identity{taint.Key, taint.Effect}
		if seen[id] {
			duplicate := field.Duplicate(path, *taint)
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
		}
		seen[id] = true
	}
	return errs
}

func validatePodCIDRs(spec *corev1.NodeSpec) field.ErrorList {
	if len(spec.PodCIDRs) == 0 {
		return nil
	}
	var errs field.ErrorList
	path := specPath.Child("podCIDRs")
	for i, cidr := range spec.PodCIDRs {
		errs = append(errs, validation.IsValidCIDR(path.Index(i), cidr)...)
	}
	if spec.PodCIDR != spec.PodCIDRs[0] {
		errs = append(errs, field.Invalid(path.Index(0), spec.PodCIDRs[0], "must match `podCIDR`"))
	}
	if len(spec.PodCIDRs) > 2 {
		return append(errs, field.Invalid(path, spec.PodCIDRs, "may specify no more than one CIDR for each IP family"))
	}
	if len(errs) == 0 && len(spec.PodCIDRs) == 2 {
		if dual, err := utilnet.IsDualStackCIDRStrings(spec.PodCIDRs); err != nil || !dual {
			errs = append(errs, field.Invalid(path, spec.PodCIDRs,
				"may specify no more than one CIDR for each IP family"))
		}
	}
	return errs
}
