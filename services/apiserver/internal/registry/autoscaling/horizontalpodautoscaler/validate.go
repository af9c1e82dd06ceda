package horizontalpodautoscaler

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

const (
	maxPeriodSeconds = 1800
	maxWindowSeconds = 3600
)

var specPath = field.NewPath("spec")

// groupless are the kinds that a target may name without the API group, as long as it names no version either: they are
// known. The core group's has none to name.
var groupless = []string{"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"}

// Validate returns what is wrong with the spec of a new, defaulted a.
func Validate(a *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	errs := append(validateSpec(&a.Spec), validateTargetVersion(&a.Spec.ScaleTargetRef,
		specPath.Child("scaleTargetRef", "apiVersion"))...)
	for i, metric := range a.Spec.Metrics {
		if metric.Object != nil {
			at := specPath.Child("metrics").Index(i).Child("object", "describedObject", "apiVersion")
			_, wrong := validateVersion(metric.Object.DescribedObject.APIVersion, at)
			errs = append(errs, wrong...)
		}
	}
	return errs
}

// ValidateUpdate returns what is wrong with the spec of a as the successor of old. A target that was allowed once may
// stay.
func ValidateUpdate(a, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	ref, before := &a.Spec.ScaleTargetRef, &old.Spec.ScaleTargetRef
	if ref.APIVersion == before.APIVersion && ref.Kind == before.Kind {
		return validateSpec(&a.Spec)
	}
	return Validate(a)
}

// ValidateStatusUpdate returns what is wrong with the status of a.
func ValidateStatusUpdate(a, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	status := field.NewPath("status")
	return append(fieldcheck.NonNegative(a.Status.CurrentReplicas, status.Child("currentReplicas")),
		fieldcheck.NonNegative(a.Status.DesiredReplicas, status.Child("desiredReplicas"))...)
}

// validateLeast returns what is wrong with the least replicas. What has none is woken by what is measured without Pods.
func validateLeast(spec *autoscalingv2.HorizontalPodAutoscalerSpec) field.ErrorList {
	switch least := spec.MinReplicas; {
	case least == nil || *least > 0:
		return nil
	case *least < 0:
		return field.ErrorList{field.Invalid(specPath.Child("minReplicas"), *least,
			"must be greater than or equal to 0")}
	}
	if slices.ContainsFunc(spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Object != nil || m.External != nil
	}) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath.Child("metrics"),
		"must specify at least one Object or External metric to support scaling to zero replicas")}
}

func validateSpec(spec *autoscalingv2.HorizontalPodAutoscalerSpec) field.ErrorList {
	errs := validateLeast(spec)
	maxPath := specPath.Child("maxReplicas")
	if spec.MaxReplicas < 1 {
		errs = append(errs, field.Invalid(maxPath, spec.MaxReplicas, "must be greater than 0"))
	}
	if spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas {
		errs = append(errs, field.Invalid(maxPath, spec.MaxReplicas,
			"must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, validateReference(&spec.ScaleTargetRef, specPath.Child("scaleTargetRef"))...)
	for i := range spec.Metrics {
		errs = append(errs, validateMetric(&spec.Metrics[i], specPath.Child("metrics").Index(i))...)
	}
	if behavior := spec.Behavior; behavior != nil {
		behaviorPath := specPath.Child("behavior")
		errs = append(errs, validateRules(behavior.ScaleUp, behaviorPath.Child("scaleUp"))...)
		errs = append(errs, validateRules(behavior.ScaleDown, behaviorPath.Child("scaleDown"))...)
	}
	return errs
}

func validateReference(ref *autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	return append(fieldcheck.Required(ref.Kind, at.Child("kind"), content.IsPathSegmentName),
		fieldcheck.Required(ref.Name, at.Child("name"), content.IsPathSegmentName)...)
}

// validateTargetVersion wants the API group of whatever is not among the known kinds of this server.
func validateTargetVersion(ref *autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	version, errs := validateVersion(ref.APIVersion, at)
	if len(errs) > 0 || version.Group != "" || ref.Kind == "ReplicationController" ||
		ref.APIVersion == "" && slices.Contains(groupless, ref.Kind) {
		return errs
	}
	return field.ErrorList{field.Invalid(at, ref.APIVersion, "apiVersion must specify API group")}
}

func validateVersion(version string, at *field.Path) (schema.GroupVersion, field.ErrorList) {
	read, err := schema.ParseGroupVersion(version)
	if err != nil {
		return read, field.ErrorList{field.Invalid(at, version, err.Error())}
	}
	return read, nil
}

func validateRules(rules *autoscalingv2.HPAScalingRules, at *field.Path) field.ErrorList {
	if rules == nil {
		return nil
	}
	var errs field.ErrorList
	if seconds := rules.StabilizationWindowSeconds; seconds != nil {
		window := at.Child("stabilizationWindowSeconds")
		if *seconds < 0 {
			errs = append(errs, field.Invalid(window, *seconds, "must be greater than or equal to zero"))
		}
		errs = append(errs, fieldcheck.AtMost(*seconds, window, maxWindowSeconds,
			fmt.Sprintf("must be less than or equal to %d", maxWindowSeconds))...)
	}
	errs = append(errs, fieldcheck.OneOfPtr(rules.SelectPolicy, at.Child("selectPolicy"),
		autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect,
		autoscalingv2.MinChangePolicySelect)...)
	policies := at.Child("policies")
	if len(rules.Policies) == 0 {
		errs = append(errs, field.Required(policies, "must specify at least one Policy"))
	}
	for i, policy := range rules.Policies {
		errs = append(errs, validatePolicy(policy, policies.Index(i))...)
	}
	if rules.Tolerance != nil && rules.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), rules.Tolerance.String(),
			"must be greater than or equal to 0"))
	}
	return errs
}

func validatePolicy(policy autoscalingv2.HPAScalingPolicy, at *field.Path) field.ErrorList {
	errs := fieldcheck.OneOf(policy.Type, at.Child("type"), autoscalingv2.PercentScalingPolicy,
		autoscalingv2.PodsScalingPolicy)
	if policy.Value <= 0 {
		errs = append(errs, field.Invalid(at.Child("value"), policy.Value, fieldcheck.MustBePositive))
	}
	period := at.Child("periodSeconds")
	if policy.PeriodSeconds <= 0 {
		errs = append(errs, field.Invalid(period, policy.PeriodSeconds, fieldcheck.MustBePositive))
	}
	return append(errs, fieldcheck.AtMost(policy.PeriodSeconds, period, maxPeriodSeconds,
		fmt.Sprintf("must be less than or equal to %d", maxPeriodSeconds))...)
}
