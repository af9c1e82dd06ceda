package job

import (
	"maps"
	"math"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/podspec"
)

// The values of the fields that a client may leave out.
const (
	defaultParallelism  = 1
	defaultCompletions  = 1
	defaultBackoffLimit = 6
	// unlimitedBackoff leaves it to the limit of each index how often Pods may fail.
	unlimitedBackoff = math.MaxInt32
)

// Default fills in the fields that j leaves out. A Job without labels bears those of its template.
func Default(j *batchv1.Job) {
	spec := &j.Spec
	SetTemplateDefaults(spec)
	if spec.Completions == nil && spec.Parallelism == nil {
		defaults.SetPtr(&spec.Completions, defaultCompletions)
	}
	defaults.SetPtr(&spec.Parallelism, defaultParallelism)
	if spec.BackoffLimitPerIndex != nil {
		defaults.SetPtr(&spec.BackoffLimit, unlimitedBackoff)
	}
	defaults.SetPtr(&spec.BackoffLimit, defaultBackoffLimit)
	defaults.SetPtr(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	defaults.SetPtr(&spec.Suspend, false)
	defaults.SetPtr(&spec.ManualSelector, false)
	// A policy looks at how a Pod ended, so its replacement has to wait for the end.
	if spec.PodFailurePolicy != nil {
		defaults.SetPtr(&spec.PodReplacementPolicy, batchv1.Failed)
	}
	defaults.SetPtr(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	if len(j.Labels) == 0 && len(spec.Template.Labels) > 0 {
		j.Labels = maps.Clone(spec.Template.Labels)
	}
}

// SetTemplateDefaults fills in what is defaulted in the template of a CronJob too: the Pods' fields and the patterns of
// the failure policy. The rest is left to the Jobs.
func SetTemplateDefaults(spec *batchv1.JobSpec) {
	podspec.SetTemplateDefaults(&spec.Template)
	if spec.PodFailurePolicy == nil {
		return
	}
	for i := range spec.PodFailurePolicy.Rules {
		patterns := spec.PodFailurePolicy.Rules[i].OnPodConditions
		for k := range patterns {
			defaults.Set(&patterns[k].Status, corev1.ConditionTrue)
		}
	}
}
