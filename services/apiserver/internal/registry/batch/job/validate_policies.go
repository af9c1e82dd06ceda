package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// The bounds of the policies' lists.
const (
	maxRules             = 20
	maxConditionPatterns = 20
	maxExitCodes         = 255
	maxIndexesText       = 64 << 10
)

// validateFailurePolicy checks the rules by which the ends of Pods are judged.
func validateFailurePolicy(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	rulesPath, rules := path.Child("rules"), spec.PodFailurePolicy.Rules
	var errs field.ErrorList
	if len(rules) > maxRules {
		errs = append(errs, field.TooMany(rulesPath, len(rules), maxRules))
	}
	containers := containerNames(&spec.Template.Spec)
	for i := range rules {
		errs = append(errs, validateFailureRule(spec, &rules[i], containers, rulesPath.Index(i))...)
	}
	return errs
}

func containerNames(spec *corev1.PodSpec) []string {
	var names []string
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			names = append(names, containers[i].Name)
		}
	}
	return names
}

func validateFailureRule(spec *batchv1.JobSpec, rule *batchv1.PodFailurePolicyRule, containers []string,
	path *field.Path) field.ErrorList {
	actionPath := path.Child("action")
	errs := fieldcheck.RequiredOneOf(rule.Action, actionPath, batchv1.PodFailurePolicyActionCount,
		batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob,
		batchv1.PodFailurePolicyActionIgnore)
	if rule.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Invalid(actionPath, rule.Action, "requires the backoffLimitPerIndex to be set"))
	}
	byExitCodes, byConditions := rule.OnExitCodes != nil, len(rule.OnPodConditions) > 0
	if byExitCodes {
		errs = append(errs, validateExitCodes(rule.OnExitCodes, containers, path.Child("onExitCodes"))...)
	}
	if byConditions {
		errs = append(errs, validateConditionPatterns(rule.OnPodConditions, path.Child("onPodConditions"))...)
	}
	if byExitCodes && byConditions {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"specifying both OnExitCodes and OnPodConditions is not supported"))
	}
	if !byExitCodes && !byConditions {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return errs
}

func validateConditionPatterns(patterns []batchv1.PodFailurePolicyOnPodConditionsPattern,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(patterns) > maxConditionPatterns {
		errs = append(errs, field.TooMany(path, len(patterns), maxConditionPatterns))
	}
	for i, pattern := range patterns {
		kind := string(pattern.Type)
		errs = append(errs, fieldcheck.Messages(kind, path.Index(i).Child("type"), validation.IsQualifiedName(kind))...)
		errs = append(errs, fieldcheck.RequiredOneOf(pattern.Status, path.Index(i).Child("status"),
			corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
	}
	return errs
}

func validateExitCodes(codes *batchv1.PodFailurePolicyOnExitCodesRequirement, containers []string,
	path *field.Path) field.ErrorList {
	errs := fieldcheck.RequiredOneOf(codes.Operator, path.Child("operator"), batchv1.PodFailurePolicyOnExitCodesOpIn,
		batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if codes.ContainerName != nil && !slices.Contains(containers, *codes.ContainerName) {
		errs = append(errs, field.Invalid(path.Child("containerName"), *codes.ContainerName,
			"must be one of the container or initContainer names in the pod template"))
	}
	valuesPath, values := path.Child("values"), codes.Values
	if len(values) == 0 {
		errs = append(errs, field.Invalid(valuesPath, values, "at least one value is required"))
	}
	if len(values) > maxExitCodes {
		errs = append(errs, field.TooMany(valuesPath, len(values), maxExitCodes))
	}
	seen := make(map[int32]bool, len(values))
	for i, code := range values {
		if code == 0 && codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			errs = append(errs, field.Invalid(valuesPath.Index(i), code, "must not be 0 for the In operator"))
		}
		if seen[code] {
			errs = append(errs, field.Duplicate(valuesPath.Index(i), code))
		}
		seen[code] = true
	}
	if !slices.IsSorted(values) {
		errs = append(errs, field.Invalid(valuesPath, values, "must be ordered"))
	}
	return errs
}

// validateSuccessPolicy checks the rules by which a Job is done early.
func validateSuccessPolicy(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if !isIndexed(spec) {
		return field.ErrorList{field.Invalid(path, *spec.SuccessPolicy, requiresIndexedCompletions)}
	}
	if spec.Completions == nil {
		return nil // which is refused already
	}
	rulesPath, rules := path.Child("rules"), spec.SuccessPolicy.Rules
	if len(rules) == 0 {
		return field.ErrorList{field.Required(rulesPath, "at least one rule must be specified")}
	}
	var errs field.ErrorList
	if len(rules) > maxRules {
		errs = append(errs, field.TooMany(rulesPath, len(rules), maxRules))
	}
	for i := range rules {
		errs = append(errs, validateSuccessRule(&rules[i], *spec.Completions, rulesPath.Index(i))...)
	}
	return errs
}

func validateSuccessRule(rule *batchv1.SuccessPolicyRule, completions int32, path *field.Path) field.ErrorList {
	if rule.SucceededCount == nil && rule.SucceededIndexes == nil {
		return field.ErrorList{field.Required(path,
			"at least one of succeededCount or succeededIndexes must be specified")}
	}
	var errs field.ErrorList
	available, described := completions, "the number of specified completions"
	if text := rule.SucceededIndexes; text != nil {
		indexesPath := path.Child("succeededIndexes")
		if len(*text) > maxIndexesText {
			errs = append(errs, field.TooLong(indexesPath, "", maxIndexesText))
		}
		listed, err := parseIndexes(*text, completions)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(indexesPath, *text, fmt.Sprintf("error parsing succeededIndexes: %v",
				err)))
		case len(listed) == 0:
			errs = append(errs, field.Invalid(indexesPath, *text, "at least one index is required"))
		default:
			available, described = listed.count(), "the number of indexes in the specified succeededIndexes field"
		}
	}
	if rule.SucceededCount == nil {
		return errs
	}
	countPath, count := path.Child("succeededCount"), *rule.SucceededCount
	if count <= 0 {
		return append(errs, field.Invalid(countPath, count, fieldcheck.MustBePositive))
	}
	return append(errs, fieldcheck.AtMost(count, countPath, available,
		fmt.Sprintf(mustBeAtMost+" (%s)", available, described))...)
}
