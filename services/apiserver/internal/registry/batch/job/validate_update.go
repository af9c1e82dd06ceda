package job

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// ValidateUpdate returns what is wrong with j as the successor of old.
func ValidateUpdate(j, old *batchv1.Job) field.ErrorList {
	spec, before := &j.Spec, &old.Spec
	errs := validateSelectedSpec(spec)
	errs = append(errs, validateCompletionsUpdate(spec, before)...)
	errs = append(errs, fieldcheck.Immutable(&spec.Template, mutableIn(old, &spec.Template), templatePath)...)
	for _, fixed := range []struct {
		name     string
		now, was any
	}{
		{"selector", spec.Selector, before.Selector},
		{"completionMode", spec.CompletionMode, before.CompletionMode},
		{"podFailurePolicy", spec.PodFailurePolicy, before.PodFailurePolicy},
		{"successPolicy", spec.SuccessPolicy, before.SuccessPolicy},
		{"backoffLimitPerIndex", spec.BackoffLimitPerIndex, before.BackoffLimitPerIndex},
		{"managedBy", spec.ManagedBy, before.ManagedBy},
	} {
		errs = append(errs, fieldcheck.Immutable(fixed.now, fixed.was, specPath.Child(fixed.name))...)
	}
	return errs
}

// validateCompletionsUpdate lets the size of an elastic Job change: one that is Indexed and runs all its indexes at
// once, before and after.
func validateCompletionsUpdate(spec, old *batchv1.JobSpec) field.ErrorList {
	path := specPath.Child("completions")
	if !isIndexed(spec) || equality.Semantic.DeepEqual(spec.Completions, old.Completions) {
		return fieldcheck.Immutable(spec.Completions, old.Completions, path)
	}
	if spec.Completions == nil {
		return nil // which is refused already
	}
	if !ptr.Equal(spec.Completions, spec.Parallelism) || !ptr.Equal(old.Completions, old.Parallelism) {
		return field.ErrorList{field.Invalid(path, *spec.Completions, "can only be modified in tandem with "+
			specPath.Child("parallelism").String()+", both being equal before and after")}
	}
	return nil
}

// mutableIn is the template of old, with what may change while nothing is made of it taken from the new one.
func mutableIn(old *batchv1.Job, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if !rests(old) {
		return &old.Spec.Template
	}
	allowed := old.Spec.Template.DeepCopy()
	takePlacement(allowed, template)
	takeResources(allowed.Spec.Containers, template.Spec.Containers)
	takeResources(allowed.Spec.InitContainers, template.Spec.InitContainers)
	return allowed
}

// rests says that a Job is suspended and has no Pod at work: it never had one, or its controller has seen that it is
// suspended and ended those that it had.
func rests(j *batchv1.Job) bool {
	return ptr.Deref(j.Spec.Suspend, false) && j.Status.Active == 0 &&
		(j.Status.StartTime == nil || isTrue(j, batchv1.JobSuspended))
}

// takePlacement takes what says where the Pods go.
func takePlacement(template, from *corev1.PodTemplateSpec) {
	template.Labels, template.Annotations = from.Labels, from.Annotations
	template.Spec.NodeSelector = from.Spec.NodeSelector
	template.Spec.Tolerations = from.Spec.Tolerations
	template.Spec.SchedulingGates = from.Spec.SchedulingGates
	takeNodeAffinity(&template.Spec, &from.Spec)
}

// takeNodeAffinity takes one part of the affinity. Without any part there may be none or an empty one.
func takeNodeAffinity(spec, from *corev1.PodSpec) {
	affinity := ptr.Deref(spec.Affinity, corev1.Affinity{})
	affinity.NodeAffinity = nil
	if from.Affinity != nil {
		affinity.NodeAffinity = from.Affinity.NodeAffinity
	}
	spec.Affinity = &affinity
	if from.Affinity == nil && affinity == (corev1.Affinity{}) {
		spec.Affinity = nil
	}
}

// takeResources takes what containers ask for, by their place. Claims stay as they are.
func takeResources(containers, from []corev1.Container) {
	if len(containers) != len(from) {
		return
	}
	for i := range containers {
		containers[i].Resources.Requests = from[i].Resources.Requests
		containers[i].Resources.Limits = from[i].Resources.Limits
	}
}
