package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
)

const (
	// maxName is how long the value of a label may be: the name is one.
	maxName      = validation.LabelValueMaxLength
	maxManagedBy = 63

	onlyWhenNever = "only %q is supported when %s is specified"
)

var (
	specPath     = field.NewPath("spec")
	selectorPath = specPath.Child("selector")
	templatePath = specPath.Child("template")
)

// validName is the check of metadata.name.
func validName(name string, prefix bool) []string {
	messages := apivalidation.NameIsDNSSubdomain(name, prefix)
	// A prefix is cut before its suffix is added.
	if len(name) > maxName && !prefix {
		messages = append(messages, validation.MaxLenError(maxName))
	}
	return messages
}

// Validate returns what is wrong with a new, defaulted Job.
func Validate(j *batchv1.Job) field.ErrorList {
	errs := validateGenerated(j)
	errs = append(errs, validateSelectedSpec(&j.Spec)...)
	return append(errs, validateHostname(j)...)
}

// ValidateTemplate returns what is wrong with the Job that a CronJob makes again and again. The selector is generated
// for each Job.
func ValidateTemplate(template *batchv1.JobTemplateSpec, path *field.Path) field.ErrorList {
	spec, path := &template.Spec, path.Child("spec")
	errs := validateSpec(spec, path)
	if spec.Selector != nil {
		errs = append(errs, field.Invalid(path.Child("selector"), spec.Selector, "`selector` will be auto-generated"))
	}
	if spec.ManualSelector != nil && *spec.ManualSelector {
		errs = append(errs, field.NotSupported(path.Child("manualSelector"), *spec.ManualSelector,
			[]string{"nil", "false"}))
	}
	return errs
}

// validateSelectedSpec is validateSpec, with the selector.
func validateSelectedSpec(spec *batchv1.JobSpec) field.ErrorList {
	errs := validateSpec(spec, specPath)
	if spec.Selector == nil {
		return append(errs, field.Required(selectorPath, ""))
	}
	errs = append(errs, fieldcheck.LabelSelector(spec.Selector, selectorPath)...)
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err == nil && !selector.Matches(labels.Set(spec.Template.Labels)) {
		errs = append(errs, field.Invalid(templatePath.Child("metadata", "labels"), spec.Template.Labels,
			fieldcheck.SelectorMismatch))
	}
	return errs
}

func validateSpec(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, fieldcheck.NonNegativePtr(spec.Parallelism, path.Child("parallelism"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.Completions, path.Child("completions"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.BackoffLimit, path.Child("backoffLimit"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.TTLSecondsAfterFinished,
		path.Child("ttlSecondsAfterFinished"))...)
	errs = append(errs, validateManagedBy(spec.ManagedBy, path.Child("managedBy"))...)
	errs = append(errs, validateCompletionMode(spec, path)...)
	if spec.PodFailurePolicy != nil {
		errs = append(errs, validateFailurePolicy(spec, path.Child("podFailurePolicy"))...)
	}
	if spec.SuccessPolicy != nil {
		errs = append(errs, validateSuccessPolicy(spec, path.Child("successPolicy"))...)
	}
	errs = append(errs, validateReplacementPolicy(spec, path.Child("podReplacementPolicy"))...)
	errs = append(errs, podspec.ValidateTemplate(&spec.Template, path.Child("template"), podspec.Options{})...)
	return append(errs, validateRestartPolicy(spec, path.Child("template", "spec", "restartPolicy"))...)
}

func validateManagedBy(managedBy *string, path *field.Path) field.ErrorList {
	if managedBy == nil {
		return nil
	}
	errs := validation.IsDomainPrefixedPath(path, *managedBy)
	if len(*managedBy) > maxManagedBy {
		errs = append(errs, field.TooLong(path, *managedBy, maxManagedBy))
	}
	return errs
}

// validateReplacementPolicy wants a replacement to wait for the end of a Pod that a failure policy judges.
func validateReplacementPolicy(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if spec.PodFailurePolicy != nil {
		return fieldcheck.OneOfPtr(spec.PodReplacementPolicy, path, batchv1.Failed)
	}
	return fieldcheck.OneOfPtr(spec.PodReplacementPolicy, path, batchv1.Failed, batchv1.TerminatingOrFailed)
}

// validateRestartPolicy refuses Pods that never end, and those whose containers are started again where each end of a
// Pod has to be judged. Policies that no Pod knows are refused with the rest of the template.
func validateRestartPolicy(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	policy := spec.Template.Spec.RestartPolicy
	switch {
	case policy == corev1.RestartPolicyAlways:
		return field.ErrorList{field.Required(path, fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure,
			corev1.RestartPolicyNever))}
	case policy != corev1.RestartPolicyOnFailure:
		return nil
	case spec.PodFailurePolicy != nil:
		return field.ErrorList{field.Invalid(path, policy,
			fmt.Sprintf(onlyWhenNever, corev1.RestartPolicyNever, "podFailurePolicy"))}
	case spec.BackoffLimitPerIndex != nil:
		return field.ErrorList{field.Invalid(path, policy,
			fmt.Sprintf(onlyWhenNever, corev1.RestartPolicyNever, "backoffLimitPerIndex"))}
	}
	return nil
}
