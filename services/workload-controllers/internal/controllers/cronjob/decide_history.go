package cronjob

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
)

// history returns the finished Jobs beyond the limits, the oldest first. Jobs that succeeded and Jobs that failed are
// counted apart.
func history(c *batchv1.CronJob, jobs []*batchv1.Job) []*batchv1.Job {
	succeeded := beyond(c.Spec.SuccessfulJobsHistoryLimit, jobs, batchv1.JobComplete)
	return append(succeeded, beyond(c.Spec.FailedJobsHistoryLimit, jobs, batchv1.JobFailed)...)
}

// beyond returns the oldest of the Jobs with an outcome, those that are more than the limit. Without a limit all
// stay.
func beyond(limit *int32, jobs []*batchv1.Job, wanted batchv1.JobConditionType) []*batchv1.Job {
	if limit == nil {
		return nil
	}
	var ended []*batchv1.Job
	for _, job := range jobs {
		if outcome(job) == wanted && job.DeletionTimestamp == nil {
			ended = append(ended, job)
		}
	}
	slices.SortStableFunc(ended, func(a, b *batchv1.Job) int {
		if order := startOf(a).Compare(startOf(b).Time); order != 0 {
			return order
		}
		return byName(a, b)
	})
	return ended[:max(len(ended)-int(*limit), 0)]
}
