package ttlafterfinished

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/seconds"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now time.Time
	Job *batchv1.Job
}

// Plan is the effect of one pass.
type Plan struct {
	// Delete says that the Job's time has come.
	Delete bool
	// Wake is when it comes; the zero time means that nothing is known of it.
	Wake time.Time
}

// Decide reports whether a finished Job has to go. One that has finished in the future, by the clock of whoever wrote
// that, stays for its time after that moment.
func Decide(in Input) Plan {
	finished := finishedAt(in.Job)
	if !NeedsWork(in.Job) || finished.IsZero() {
		return Plan{}
	}
	due := finished.Add(seconds.Of(*in.Job.Spec.TTLSecondsAfterFinished))
	if in.Now.Before(due) {
		return Plan{Wake: due}
	}
	return Plan{Delete: true}
}

// NeedsWork reports whether a Job is finished, asks to be taken away, and is not on its way out.
func NeedsWork(job *batchv1.Job) bool {
	return job.Spec.TTLSecondsAfterFinished != nil && job.DeletionTimestamp == nil && ending(job) != nil
}

// finishedAt is when the Job became complete or failed; zero: it has not, or does not say when.
func finishedAt(job *batchv1.Job) time.Time {
	if condition := ending(job); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}

// ending is the condition in which the Job has ended.
func ending(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		condition := &job.Status.Conditions[i]
		if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) &&
			condition.Status == corev1.ConditionTrue {
			return condition
		}
	}
	return nil
}
