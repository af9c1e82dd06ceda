package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
	"keelson.dev/kit/seconds"
)

// judge determines the outcome of the Job, if there is one. An outcome in the status is final.
func (r *round) judge() {
	if told := interim(&r.status); told != nil {
		r.verdict = told
		return
	}
	if r.job.DeletionTimestamp != nil {
		return
	}
	r.verdict = r.failure()
	if r.verdict == nil {
		r.verdict = r.success()
	}
	if r.verdict != nil {
		r.verdict.Status, r.verdict.LastProbeTime = corev1.ConditionTrue, stamp(r.in.Now)
		r.status.Conditions, _ = conditions.Job.Set(r.status.Conditions, *r.verdict, r.in.Now)
	}
}

// failure returns why the Job fails, or nil.
func (r *round) failure() *batchv1.JobCondition {
	because := func(reason, message string) *batchv1.JobCondition {
		return &batchv1.JobCondition{Type: batchv1.JobFailureTarget, Reason: reason, Message: message}
	}
	for i := range r.members {
		if m := &r.members[i]; m.tracked && m.handling.action == batchv1.PodFailurePolicyActionFailJob {
			return because(batchv1.JobReasonPodFailurePolicy, m.handling.message)
		}
	}
	limit, limited := r.job.Spec.MaxFailedIndexes, r.job.Spec.BackoffLimitPerIndex != nil
	switch {
	case r.failures > valueOr(r.job.Spec.BackoffLimit, defaultBackoffLimit) || r.restartsTooOften():
		return because(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case r.isOverdue():
		return because(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	case limited && limit != nil && r.failed.count() > int(*limit):
		return because(batchv1.JobReasonMaxFailedIndexesExceeded,
			"Job has exceeded the specified maximal number of failed indexes")
	case limited && len(r.failed) > 0 && r.failed.count()+r.completed.count() >= r.completions:
		return because(batchv1.JobReasonFailedIndexes, "Job has failed indexes")
	default:
		return nil
	}
}

// defaultBackoffLimit is the apiserver's default for backoffLimit.
const defaultBackoffLimit = 6

// restartsTooOften reports whether restarts of containers within their Pods have reached the limit.
func (r *round) restartsTooOften() bool {
	if r.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	restarts := 0
	for i := range r.members {
		if m := &r.members[i]; !m.tracked || m.ending != live {
			continue
		}
		status := &r.members[i].pod.Status
		for _, statuses := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
			for j := range statuses {
				restarts += int(statuses[j].RestartCount)
			}
		}
	}
	return restarts >= max(1, valueOr(r.job.Spec.BackoffLimit, defaultBackoffLimit))
}

// deadline returns until when a Job that started then may be active; zero means without limit.
func (r *round) deadline(start *metav1.Time) time.Time {
	limit := r.job.Spec.ActiveDeadlineSeconds
	if limit == nil || start == nil || isSuspended(r.job) {
		return time.Time{}
	}
	return start.Add(seconds.Of(*limit))
}

// isOverdue reports whether the Job has been active too long. A Job that was suspended until now starts a new
// period.
func (r *round) isOverdue() bool {
	deadline := r.deadline(r.job.Status.StartTime)
	return !deadline.IsZero() && !deadline.After(r.in.Now) && !isTrue(&r.status, batchv1.JobSuspended)
}

// success returns why the Job succeeds, or nil.
func (r *round) success() *batchv1.JobCondition {
	because := func(reason, message string) *batchv1.JobCondition {
		return &batchv1.JobCondition{Type: batchv1.JobSuccessCriteriaMet, Reason: reason, Message: message}
	}
	if message, met := metRule(r.job.Spec.SuccessPolicy, r.completed, r.completions); met && r.indexed {
		return because(batchv1.JobReasonSuccessPolicy, message)
	}
	reached := r.successes >= r.completions
	if r.completions == noIndex {
		reached = r.successes > 0 && len(r.active()) == 0
	}
	if !reached {
		return nil
	}
	return because(batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
}

// end ends the Pods of a Job whose outcome is known. Pods of a failed Job are counted when they end, Pods of a
// successful one need not be.
func (r *round) end() {
	r.plan.End = r.active()
	if r.verdict.Type == batchv1.JobSuccessCriteriaMet {
		r.plan.Remove, r.plan.End = r.plan.End, nil
	}
}

// finish ends the Job once its outcome is known and every Pod has ended and been counted.
func (r *round) finish() {
	uncounted := r.status.UncountedTerminatedPods
	if len(r.members)+len(uncounted.Succeeded)+len(uncounted.Failed) > 0 {
		return
	}
	end := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: r.verdict.Reason,
		Message: r.verdict.Message, LastProbeTime: stamp(r.in.Now)}
	told := events.Warning(end.Reason, "%s", end.Message)
	now := stamp(r.in.Now)
	if r.status.StartTime == nil {
		r.status.StartTime = &now
	}
	if r.verdict.Type == batchv1.JobSuccessCriteriaMet {
		end.Type, r.status.CompletionTime, told = batchv1.JobComplete, &now, completed()
	}
	r.status.Conditions, _ = conditions.Job.Set(r.status.Conditions, end, r.in.Now)
	r.plan.Events = append(r.plan.Events, told)
}
