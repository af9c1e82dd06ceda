package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

var (
	statusPath     = field.NewPath("status")
	conditionsPath = statusPath.Child("conditions")

	// lasting conditions are true for ever once they are.
	lasting = []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget,
		batchv1.JobSuccessCriteriaMet}
	// exclusive conditions are never true together.
	exclusive = [][2]batchv1.JobConditionType{
		{batchv1.JobComplete, batchv1.JobFailed},
		{batchv1.JobComplete, batchv1.JobFailureTarget},
		{batchv1.JobFailed, batchv1.JobSuccessCriteriaMet},
		{batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet},
	}
	// announced conditions come after another.
	announced = [][2]batchv1.JobConditionType{
		{batchv1.JobFailed, batchv1.JobFailureTarget},
		{batchv1.JobComplete, batchv1.JobSuccessCriteriaMet},
	}
)

// ValidateStatusUpdate returns what is wrong with j's status as the successor of old's: with itself, with the spec, or
// with what has been said before. It is the contract that other controllers of Jobs (managedBy) have to keep as well.
func ValidateStatusUpdate(j, old *batchv1.Job) field.ErrorList {
	errs := validateCounts(j, old)
	errs = append(errs, validateConditions(j, old)...)
	errs = append(errs, validateStart(j, old)...)
	errs = append(errs, validateCompletionTime(j, old)...)
	errs = append(errs, validateUncounted(j.Status.UncountedTerminatedPods)...)
	errs = append(errs, validateStatusIndexes(j, old)...)
	if isFinished(j) {
		errs = append(errs, validateFinished(j)...)
	}
	return errs
}

func isTrue(j *batchv1.Job, condition batchv1.JobConditionType) bool {
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; c.Type == condition && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func isFinished(j *batchv1.Job) bool {
	return isTrue(j, batchv1.JobComplete) || isTrue(j, batchv1.JobFailed)
}

// validateCounts checks the counts of Pods. What has ended stays counted, except that a smaller elastic Job forgets the
// indexes that it has no more.
func validateCounts(j, old *batchv1.Job) field.ErrorList {
	status := &j.Status
	errs := fieldcheck.NonNegative(status.Active, statusPath.Child("active"))
	errs = append(errs, fieldcheck.NonNegative(status.Succeeded, statusPath.Child("succeeded"))...)
	errs = append(errs, fieldcheck.NonNegative(status.Failed, statusPath.Child("failed"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(status.Ready, statusPath.Child("ready"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(status.Terminating, statusPath.Child("terminating"))...)
	if ready := ptr.Deref(status.Ready, 0); ready > status.Active {
		errs = append(errs, field.Invalid(statusPath.Child("ready"), ready, "cannot set more ready pods than active"))
	}
	if status.Failed < old.Status.Failed {
		errs = append(errs, field.Invalid(statusPath.Child("failed"), status.Failed,
			"cannot decrease the failed counter"))
	}
	elastic := isIndexed(&j.Spec) && ptr.Equal(j.Spec.Completions, j.Spec.Parallelism)
	if status.Succeeded < old.Status.Succeeded && !elastic {
		errs = append(errs, field.Invalid(statusPath.Child("succeeded"), status.Succeeded,
			"cannot decrease the succeeded counter"))
	}
	return errs
}

func validateConditions(j, old *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	refuse := func(format string, args ...any) {
		errs = append(errs, field.Invalid(conditionsPath, field.OmitValueType{}, fmt.Sprintf(format, args...)))
	}
	for _, pair := range exclusive {
		if isTrue(j, pair[0]) && isTrue(j, pair[1]) {
			refuse("cannot set %s=True and %s=True conditions", pair[0], pair[1])
		}
	}
	for _, pair := range announced {
		if isTrue(j, pair[0]) && !isTrue(j, pair[1]) {
			refuse("cannot set %s=True condition without the %s=True condition", pair[0], pair[1])
		}
	}
	for _, condition := range lasting {
		if isTrue(old, condition) && !isTrue(j, condition) {
			refuse("cannot disable the %s=True condition", condition)
		}
	}
	return errs
}

// validateStart keeps the start while the Job runs, and once it is finished.
func validateStart(j, old *batchv1.Job) field.ErrorList {
	start, before, path := j.Status.StartTime, old.Status.StartTime, statusPath.Child("startTime")
	if before == nil || start.Equal(before) {
		return nil
	}
	suspended := ptr.Deref(j.Spec.Suspend, false)
	switch {
	case start == nil && !suspended:
		return field.ErrorList{field.Required(path, "startTime cannot be removed for unsuspended job")}
	case isFinished(old):
		return field.ErrorList{field.Invalid(path, start, "startTime cannot be updated for finished job")}
	// Resumed, the Job starts again, while the last status still says that it is suspended.
	case start != nil && !suspended && !isTrue(old, batchv1.JobSuspended):
		return field.ErrorList{field.Invalid(path, start, "startTime cannot be updated for unsuspended job")}
	}
	return nil
}

// validateCompletionTime wants a time of completion to come with it, and keeps it for ever.
func validateCompletionTime(j, old *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	completion, before, path := j.Status.CompletionTime, old.Status.CompletionTime, statusPath.Child("completionTime")
	if before != nil && !completion.Equal(before) {
		errs = append(errs, field.Invalid(path, completion, "completionTime cannot be mutated"))
	}
	complete := isTrue(j, batchv1.JobComplete)
	if completion == nil && complete {
		errs = append(errs, field.Required(path, "completionTime is required for Complete jobs"))
	}
	if completion != nil && !complete {
		errs = append(errs, field.Invalid(path, completion,
			"cannot set completionTime when there is no Complete=True condition"))
	}
	if start := j.Status.StartTime; start != nil && completion != nil && completion.Before(start) {
		errs = append(errs, field.Invalid(path, completion, "completionTime cannot be set before startTime"))
	}
	return errs
}

// validateUncounted wants each Pod to be listed once.
func validateUncounted(uncounted *batchv1.UncountedTerminatedPods) field.ErrorList {
	if uncounted == nil {
		return nil
	}
	var errs field.ErrorList
	path, seen := statusPath.Child("uncountedTerminatedPods"), map[types.UID]bool{}
	check := func(uids []types.UID, path *field.Path) {
		for i, uid := range uids {
			if uid == "" {
				errs = append(errs, field.Invalid(path.Index(i), uid, "must not be empty"))
			} else if seen[uid] {
				errs = append(errs, field.Duplicate(path.Index(i), uid))
			}
			seen[uid] = true
		}
	}
	check(uncounted.Succeeded, path.Child("succeeded"))
	check(uncounted.Failed, path.Child("failed"))
	return errs
}

// validateStatusIndexes checks the lists of indexes. One that is as it was may be out of bounds, since the Job may have
// become smaller meanwhile.
func validateStatusIndexes(j, old *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	completed, failed := j.Status.CompletedIndexes, j.Status.FailedIndexes
	newCompleted := completed != old.Status.CompletedIndexes
	newFailed := !ptr.Equal(failed, old.Status.FailedIndexes)
	completedPath, failedPath := statusPath.Child("completedIndexes"), statusPath.Child("failedIndexes")
	if newCompleted && completed != "" && !isIndexed(&j.Spec) {
		return field.ErrorList{field.Invalid(completedPath, completed,
			"cannot set non-empty completedIndexes when non-indexed completion mode")}
	}
	if newFailed && failed != nil && j.Spec.BackoffLimitPerIndex == nil {
		return field.ErrorList{field.Invalid(failedPath, *failed,
			"cannot set non-null failedIndexes when backoffLimitPerIndex is null")}
	}
	completions := ptr.Deref(j.Spec.Completions, 0)
	completedRuns, completedErr := parseIndexes(completed, completions)
	failedRuns, failedErr := parseIndexes(ptr.Deref(failed, ""), completions)
	if newCompleted && completedErr != nil {
		errs = append(errs, field.Invalid(completedPath, completed,
			fmt.Sprintf("error parsing completedIndexes: %v", completedErr)))
	}
	if newFailed && failedErr != nil {
		errs = append(errs, field.Invalid(failedPath, failed,
			fmt.Sprintf("error parsing failedIndexes: %v", failedErr)))
	}
	if completedErr == nil && failedErr == nil && completedRuns.overlaps(failedRuns) {
		errs = append(errs, field.Invalid(failedPath, failed, "failedIndexes and completedIndexes overlap"))
	}
	return errs
}

// validateFinished wants nothing to be left of a finished Job: no Pod that runs, none that is still to be counted.
func validateFinished(j *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	status := &j.Status
	if status.Active > 0 {
		errs = append(errs, field.Invalid(statusPath.Child("active"), status.Active,
			"active>0 is invalid for finished job"))
	}
	if terminating := ptr.Deref(status.Terminating, 0); terminating > 0 {
		errs = append(errs, field.Invalid(statusPath.Child("terminating"), terminating,
			"terminating>0 is invalid for finished job"))
	}
	if u := status.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		errs = append(errs, field.Invalid(statusPath.Child("uncountedTerminatedPods"), u,
			"uncountedTerminatedPods needs to be empty for finished job"))
	}
	// Nothing is started of a suspended Job that has nothing to do.
	idle := ptr.Deref(j.Spec.Suspend, false) && ptr.Equal(j.Spec.Completions, ptr.To[int32](0))
	if status.StartTime == nil && !idle {
		errs = append(errs, field.Required(statusPath.Child("startTime"), "startTime is required for finished job"))
	}
	return errs
}
