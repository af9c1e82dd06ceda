package cronjob

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
)

// outcome is the condition in which a Job has ended; empty: it has not.
func outcome(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// observedStatus is the status as the Jobs say, and what has happened since the last one. Among the Jobs that run are
// those that were made by the schedule, and no others of the CronJob.
func observedStatus(c *batchv1.CronJob, jobs []*batchv1.Job, now time.Time) (batchv1.CronJobStatus, []events.Event) {
	status := batchv1.CronJobStatus{LastScheduleTime: c.Status.LastScheduleTime,
		LastSuccessfulTime: c.Status.LastSuccessfulTime}
	byUID := make(map[types.UID]*batchv1.Job, len(jobs))
	for _, job := range jobs {
		byUID[job.UID] = job
		if outcome(job) == batchv1.JobComplete {
			status.LastSuccessfulTime = latest(status.LastSuccessfulTime, job.Status.CompletionTime)
		}
		if at := scheduledTime(job); at != nil && !at.After(now) {
			status.LastScheduleTime = latest(status.LastScheduleTime, at)
		}
	}
	var happened []events.Event
	listed := make(map[types.UID]bool, len(c.Status.Active))
	for _, reference := range c.Status.Active {
		switch job := byUID[reference.UID]; {
		case listed[reference.UID]:
		case job == nil:
			happened = append(happened, missing(reference.Name))
		case outcome(job) != "":
			happened = append(happened, completed(job.Name, outcome(job)))
		default:
			status.Active = append(status.Active, reference)
		}
		listed[reference.UID] = true
	}
	for _, job := range jobs {
		if !listed[job.UID] && outcome(job) == "" && isScheduled(job) {
			status.Active = append(status.Active, referenceTo(job))
		}
	}
	return status, happened
}

// isScheduled reports whether a Job was made by a schedule, rather than by a person from its template.
func isScheduled(job *batchv1.Job) bool {
	_, scheduled := job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]
	return scheduled
}

// scheduledTime is the time for which a Job was made; nil: it was made for none.
func scheduledTime(job *batchv1.Job) *metav1.Time {
	at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: at}
}

// latest is the later of two times, each of which may be missing.
func latest(a, b *metav1.Time) *metav1.Time {
	if a == nil || a.Before(b) {
		return b
	}
	return a
}

// startedStatus is the status once a Job was started for a scheduled time.
func startedStatus(status batchv1.CronJobStatus, start *Start, job *batchv1.Job) batchv1.CronJobStatus {
	status.LastScheduleTime = &metav1.Time{Time: start.At}
	if start.Replaced != nil {
		status.Active = nil
	}
	status.Active = append(slices.Clone(status.Active), referenceTo(job))
	return status
}

func referenceTo(job *batchv1.Job) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job",
		Namespace: job.Namespace, Name: job.Name, UID: job.UID}
}

// byName is an order that does not depend on the cache's.
func byName(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) }
