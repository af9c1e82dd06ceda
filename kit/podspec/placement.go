package podspec

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// validatePlacement checks all that decides on which node, and when, the Pod may run.
func validatePlacement(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Optional(spec.NodeName, fldPath.Child("nodeName"), fieldcheck.DNSSubdomain)
	errs = append(errs, fieldcheck.Required(spec.SchedulerName, fldPath.Child("schedulerName"),
		fieldcheck.DNSSubdomain)...)
	errs = append(errs, metav1validation.ValidateLabels(spec.NodeSelector, fldPath.Child("nodeSelector"))...)
	errs = append(errs, validateAffinity(spec.Affinity, fldPath.Child("affinity"))...)
	errs = append(errs, ValidateTolerations(spec.Tolerations, fldPath.Child("tolerations"))...)
	errs = append(errs, validateSpread(spec.TopologySpreadConstraints, fldPath.Child("topologySpreadConstraints"))...)
	errs = append(errs, validateReadinessGates(spec.ReadinessGates, fldPath.Child("readinessGates"))...)
	errs = append(errs, validateSchedulingGates(spec, fldPath)...)
	errs = append(errs, validateSchedulingGroup(spec.SchedulingGroup, fldPath.Child("schedulingGroup"))...)
	for _, name := range sortedNames(spec.Overhead) {
		at := fldPath.Child("overhead").Key(string(name))
		errs = append(errs, ValidateContainerResourceName(name, at)...)
		errs = append(errs, validateQuantity(name, spec.Overhead[name], at)...)
	}
	return errs
}

// validateSchedulingGroup checks the reference to the group that the Pod is scheduled with, of which there is one kind.
func validateSchedulingGroup(group *corev1.PodSchedulingGroup, fldPath *field.Path) field.ErrorList {
	switch {
	case group == nil:
		return nil
	case group.PodGroupName == nil:
		return field.ErrorList{field.Invalid(fldPath, "", "must specify one of: `podGroupName`")}
	}
	return fieldcheck.Messages(*group.PodGroupName, fldPath.Child("podGroupName"),
		fieldcheck.DNSSubdomain(*group.PodGroupName))
}

func validateReadinessGates(gates []corev1.PodReadinessGate, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, gate := range gates {
		name := string(gate.ConditionType)
		errs = append(errs, fieldcheck.Messages(name, fldPath.Index(i).Child("conditionType"),
			validation.IsQualifiedName(name))...)
	}
	return errs
}

// validateSchedulingGates keeps a Pod that is not to be placed yet from being placed by hand.
func validateSchedulingGates(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, gate := range spec.SchedulingGates {
		at := fldPath.Child("schedulingGates").Index(i)
		errs = append(errs, fieldcheck.Messages(gate.Name, at, validation.IsQualifiedName(gate.Name))...)
		if names.Has(gate.Name) {
			errs = append(errs, field.Duplicate(at, gate.Name))
		}
		names.Insert(gate.Name)
	}
	if len(spec.SchedulingGates) > 0 && spec.NodeName != "" {
		errs = append(errs, field.Forbidden(fldPath.Child("nodeName"),
			"cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

// ValidateTolerations checks the taints that are tolerated.
func ValidateTolerations(tolerations []corev1.Toleration, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, toleration := range tolerations {
		errs = append(errs, validateToleration(toleration, fldPath.Index(i))...)
	}
	return errs
}

func validateToleration(toleration corev1.Toleration, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if toleration.Key != "" {
		errs = append(errs, fieldcheck.LabelKey(toleration.Key, fldPath.Child("key"))...)
	} else if toleration.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(fldPath.Child("operator"), toleration.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(fldPath.Child("effect"), toleration.Effect,
			"effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch toleration.Operator {
	case corev1.TolerationOpEqual, "":
		errs = append(errs, fieldcheck.Messages(toleration.Value, fldPath.Child("operator"),
			validation.IsValidLabelValue(toleration.Value))...)
	case corev1.TolerationOpExists:
		if toleration.Value != "" {
			errs = append(errs, field.Invalid(fldPath.Child("operator"), toleration.Value,
				"value must be empty when `operator` is 'Exists'"))
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		errs = append(errs, fieldcheck.Messages(toleration.Value, fldPath.Child("value"),
			decimal(toleration.Value))...)
	default:
		errs = append(errs, fieldcheck.OneOf(toleration.Operator, fldPath.Child("operator"),
			corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpGt, corev1.TolerationOpLt)...)
	}
	if toleration.Effect != "" {
		errs = append(errs, fieldcheck.OneOf(toleration.Effect, fldPath.Child("effect"),
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	return errs
}

// decimal says what keeps the value from being compared with that of a taint.
func decimal(value string) []string {
	if messages := content.IsDecimalInteger(value); len(messages) > 0 {
		return messages
	}
	if _, err := strconv.ParseInt(value, 10, 64); err != nil {
		return []string{"must be a 64-bit integer"}
	}
	return nil
}

// spreadKey is what distinguishes the constraints of one Pod.
type spreadKey struct {
	topologyKey string
	action      corev1.UnsatisfiableConstraintAction
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[spreadKey]()
	for i := range constraints {
		constraint, at := &constraints[i], fldPath.Index(i)
		errs = append(errs, validateSpreadConstraint(constraint, at)...)
		key := spreadKey{constraint.TopologyKey, constraint.WhenUnsatisfiable}
		if seen.Has(key) {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"),
				fmt.Sprintf("{%v, %v}", key.topologyKey, key.action)))
		}
		seen.Insert(key)
	}
	return errs
}

func validateSpreadConstraint(constraint *corev1.TopologySpreadConstraint, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if constraint.MaxSkew <= 0 {
		errs = append(errs, field.Invalid(fldPath.Child("maxSkew"), constraint.MaxSkew, fieldcheck.MustBePositive))
	}
	errs = append(errs, topologyKey(constraint.TopologyKey, fldPath.Child("topologyKey"))...)
	errs = append(errs, fieldcheck.OneOf(constraint.WhenUnsatisfiable, fldPath.Child("whenUnsatisfiable"),
		corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
	if domains := constraint.MinDomains; domains != nil {
		at := fldPath.Child("minDomains")
		if *domains <= 0 {
			errs = append(errs, field.Invalid(at, *domains, fieldcheck.MustBePositive))
		}
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, field.Invalid(at, *domains, fmt.Sprintf(
				"can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule,
				constraint.WhenUnsatisfiable)))
		}
	}
	for name, policy := range map[string]*corev1.NodeInclusionPolicy{
		"nodeAffinityPolicy": constraint.NodeAffinityPolicy, "nodeTaintsPolicy": constraint.NodeTaintsPolicy,
	} {
		errs = append(errs, fieldcheck.OneOfPtr(policy, fldPath.Child(name),
			corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
	}
	errs = append(errs, matchLabelKeys(constraint.MatchLabelKeys, constraint.LabelSelector,
		fldPath.Child("matchLabelKeys"))...)
	return append(errs, fieldcheck.LabelSelector(constraint.LabelSelector, fldPath.Child("labelSelector"))...)
}

func topologyKey(key string, fldPath *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(fldPath, "can not be empty")}
	}
	return fieldcheck.LabelKey(key, fldPath)
}
