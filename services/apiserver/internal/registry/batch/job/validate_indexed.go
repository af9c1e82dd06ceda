package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// The bounds of Indexed Jobs, which keep the lists of indexes in their status within what an object may hold.
const (
	maxIndexedParallelism = 100_000
	maxFailedIndexes      = 100_000
	// manyCompletions is above which the narrower bounds hold.
	manyCompletions            = 100_000
	maxParallelismOfMany       = 10_000
	maxFailedIndexesOfMany     = 10_000
	mustBeAtMost               = "must be less than or equal to %d"
	ofMany                     = " when completions are above %d and used with backoff limit per index"
	requiresIndexedCompletions = "requires indexed completion mode"
	requiredWithMaxFailed      = "when maxFailedIndexes is specified"
)

func isIndexed(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// validateCompletionMode checks the mode and what depends on it.
func validateCompletionMode(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := fieldcheck.OneOfPtr(spec.CompletionMode, path.Child("completionMode"), batchv1.NonIndexedCompletion,
		batchv1.IndexedCompletion)
	perIndexPath, failedPath := path.Child("backoffLimitPerIndex"), path.Child("maxFailedIndexes")
	errs = append(errs, fieldcheck.NonNegativePtr(spec.BackoffLimitPerIndex, perIndexPath)...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.MaxFailedIndexes, failedPath)...)
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(perIndexPath, requiredWithMaxFailed))
	}
	if isIndexed(spec) {
		return append(errs, validateIndexed(spec, path)...)
	}
	if spec.BackoffLimitPerIndex != nil {
		errs = append(errs, field.Invalid(perIndexPath, *spec.BackoffLimitPerIndex, requiresIndexedCompletions))
	}
	if spec.MaxFailedIndexes != nil {
		errs = append(errs, field.Invalid(failedPath, *spec.MaxFailedIndexes, requiresIndexedCompletions))
	}
	return errs
}

func validateIndexed(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	parallelismPath, failedPath := path.Child("parallelism"), path.Child("maxFailedIndexes")
	parallelism, failed := ptr.Deref(spec.Parallelism, 0), ptr.Deref(spec.MaxFailedIndexes, 0)
	errs = append(errs, fieldcheck.AtMost(parallelism, parallelismPath, maxIndexedParallelism,
		fmt.Sprintf(mustBeAtMost+" when completion mode is %s", maxIndexedParallelism, batchv1.IndexedCompletion))...)
	errs = append(errs, fieldcheck.AtMost(failed, failedPath, maxFailedIndexes,
		fmt.Sprintf(mustBeAtMost, maxFailedIndexes))...)
	if spec.Completions == nil {
		return append(errs, field.Required(path.Child("completions"),
			fmt.Sprintf("when completion mode is %s", batchv1.IndexedCompletion)))
	}
	errs = append(errs, fieldcheck.AtMost(failed, failedPath, *spec.Completions,
		"must be less than or equal to completions")...)
	if *spec.Completions <= manyCompletions || spec.BackoffLimitPerIndex == nil {
		return errs
	}
	if spec.MaxFailedIndexes == nil {
		errs = append(errs, field.Required(failedPath,
			fmt.Sprintf("must be specified when completions are above %d", manyCompletions)))
	}
	errs = append(errs, fieldcheck.AtMost(parallelism, parallelismPath, maxParallelismOfMany,
		fmt.Sprintf(mustBeAtMost+ofMany, maxParallelismOfMany, manyCompletions))...)
	return append(errs, fieldcheck.AtMost(failed, failedPath, maxFailedIndexesOfMany,
		fmt.Sprintf(mustBeAtMost+ofMany, maxFailedIndexesOfMany, manyCompletions))...)
}

// validateHostname wants the Pod of each index to have a hostname: the Job's name and the index.
func validateHostname(j *batchv1.Job) field.ErrorList {
	completions := ptr.Deref(j.Spec.Completions, 0)
	if !isIndexed(&j.Spec) || completions <= 0 {
		return nil
	}
	hostname := fmt.Sprintf("%s-%d", j.Name, completions-1)
	if len(validation.IsDNS1123Label(hostname)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), j.Name,
		"will not able to create pod with invalid DNS label: "+hostname)}
}
