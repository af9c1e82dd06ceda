package cronjob

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
)

var kind = batchv1.SchemeGroupVersion.WithKind("CronJob")

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now     time.Time
	CronJob *batchv1.CronJob
	// Jobs are those that the CronJob controls.
	Jobs []*batchv1.Job
	// Location is the time zone that spec.timeZone names, or else that of the process.
	Location *time.Location
	// LocationError says why the zone is not known.
	LocationError error
	// TooManyMissed says what becomes of a CronJob that has missed more than a hundred times.
	TooManyMissed TooManyMissed
}

// Plan names every effect of one pass. apply carries out its fields in order; a failure ends the pass.
type Plan struct {
	// Events are what happened since the last pass, or keeps a Job from being started.
	Events []events.Event
	// Delete are finished Jobs beyond the history limits.
	Delete []*batchv1.Job
	// Start is the Job to make; nil: none.
	Start *Start
	// Status is what the CronJob's status must be; a Job that is started is added to it.
	Status batchv1.CronJobStatus
	// Wake is when to decide again though nothing changes; the zero time means never.
	Wake time.Time
}

// Start is a Job for a scheduled time.
type Start struct {
	At  time.Time
	Job *batchv1.Job
	// Replaced are the Jobs that have to go first; nil: running Jobs are left alone.
	Replaced []*batchv1.Job
}

// Decide says what one pass over a CronJob has to do.
func Decide(in Input) Plan {
	c := in.CronJob
	jobs := slices.SortedFunc(slices.Values(in.Jobs), byName)
	status, happened := observedStatus(c, jobs, in.Now)
	plan := Plan{Events: happened, Status: status}
	if c.DeletionTimestamp != nil {
		return plan
	}
	if !status.LastScheduleTime.Equal(c.Status.LastScheduleTime) {
		// An earlier pass started a Job and did not come to say so. That is said before the Job may be deleted, or its
		// time would have another one.
		plan.Wake = in.Now
		return plan
	}
	plan.Delete = history(c, jobs)
	if isSuspended(c) {
		return plan
	}
	if in.LocationError != nil {
		return plan.saying(unknownTimeZone(c, in.LocationError))
	}
	schedule, err := parse(c.Spec.Schedule)
	if err != nil {
		return plan.saying(unparseable(c, err))
	}
	t := timesOf(c, schedule, in.Location, in.Now)
	plan.Wake = t.next
	if t.tooMany && in.TooManyMissed == StartNone {
		return plan.saying(stoppedByTooManyMissed())
	}
	if t.due.IsZero() {
		if !t.late.IsZero() {
			return plan.saying(missed(t.late))
		}
		return plan
	}
	plan = plan.start(c, jobs, t.due)
	if t.tooMany && plan.Start != nil {
		plan = plan.saying(tooManyMissed())
	}
	return plan
}

func (p Plan) saying(e events.Event) Plan {
	p.Events = append(p.Events, e)
	return p
}

// start adds the Job for the time that is due, as far as those that run allow.
func (p Plan) start(c *batchv1.CronJob, jobs []*batchv1.Job, at time.Time) Plan {
	name := nameFor(c, at)
	if slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return job.Name == name }) {
		// An earlier pass made it, and did not come to say so.
		p.Status.LastScheduleTime = &metav1.Time{Time: at}
		return p
	}
	if c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(p.Status.Active) > 0 {
		return p.saying(alreadyActive())
	}
	p.Start = &Start{At: at, Job: jobFor(c, at)}
	if c.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		p.Start.Replaced = []*batchv1.Job{}
		running := map[types.UID]bool{}
		for _, reference := range p.Status.Active {
			running[reference.UID] = true
		}
		for _, job := range jobs {
			if running[job.UID] && job.DeletionTimestamp == nil {
				p.Start.Replaced = append(p.Start.Replaced, job)
			}
		}
	}
	return p
}

// jobFor is the Job for a scheduled time, which it bears as it is in the time zone asked for.
func jobFor(c *batchv1.CronJob, at time.Time) *batchv1.Job {
	template := c.Spec.JobTemplate.DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, template.Annotations)
	zoned := at
	if c.Spec.TimeZone == nil {
		zoned = at.UTC()
	}
	annotations[batchv1.CronJobScheduledTimestampAnnotation] = zoned.Format(time.RFC3339)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: nameFor(c, at), Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, kind)},
		},
		Spec: template.Spec,
	}
}

// startOf is when a Job started; one that never did counts from its creation.
func startOf(job *batchv1.Job) metav1.Time {
	if job.Status.StartTime != nil {
		return *job.Status.StartTime
	}
	return job.CreationTimestamp
}
