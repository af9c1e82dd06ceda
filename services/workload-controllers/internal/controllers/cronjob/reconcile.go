package cronjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	// The time zones, where the system has none.
	_ "time/tzdata"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/write"
)

// errNameTaken says that a Job of another owner has the name.
var errNameTaken = errors.New("the name of the Job is taken")

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller makes Jobs by the schedules of CronJobs.
type Controller struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the apiserver
	cronJobs *write.Writer
	jobs     *write.Writer
	owned    ownerindex.Index[*batchv1.Job]
	gate     *gate.Gate
	recorder recorder
	now      func() time.Time
	settings Settings
}

// steps are what a pass over a CronJob consists of.
func (c *Controller) steps() *pass.Steps[*batchv1.CronJob, Input, Plan] {
	return &pass.Steps[*batchv1.CronJob, Input, Plan]{
		Reader: c.client, New: func() *batchv1.CronJob { return &batchv1.CronJob{} }, Gate: c.gate,
		Observe: func(_ context.Context, cronJob *batchv1.CronJob) (Input, bool, error) {
			return c.observe(cronJob), true, nil
		},
		Decide: Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe reads the input of a decision. All of it is shared with the cache.
func (c *Controller) observe(cronJob *batchv1.CronJob) Input {
	in := Input{Now: c.now(), CronJob: cronJob, Jobs: c.owned.Owned(cronJob.UID), Location: time.Local,
		TooManyMissed: c.settings.TooManyMissed}
	if zone := cronJob.Spec.TimeZone; zone != nil {
		in.Location, in.LocationError = time.LoadLocation(*zone)
	}
	return in
}

// apply carries out the plan in the order of its fields and stops at the first failure.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if err := c.confirm(ctx, in); err != nil {
		return err
	}
	for _, e := range plan.Events {
		c.recorder.Record(in.CronJob, e)
	}
	if err := c.delete(ctx, in.CronJob, plan.Delete); err != nil {
		return err
	}
	status := plan.Status
	if plan.Start != nil {
		job, err := c.start(ctx, in.CronJob, plan.Start)
		if err != nil && !errors.Is(err, errNameTaken) {
			return err
		}
		if job != nil {
			status = startedStatus(status, plan.Start, job)
		}
	}
	of := func(cronJob *batchv1.CronJob) *batchv1.CronJobStatus { return &cronJob.Status }
	_, err := write.Status(ctx, c.cronJobs, in.CronJob, status, of)
	return err
}

// confirm looks past the cache for the Jobs that the status lists and the cache does not show. A leader whose cache
// is behind that of the last one would start others beside them.
func (c *Controller) confirm(ctx context.Context, in Input) error {
	for _, reference := range in.CronJob.Status.Active {
		if slices.ContainsFunc(in.Jobs, func(job *batchv1.Job) bool { return job.UID == reference.UID }) {
			continue
		}
		existing := &batchv1.Job{}
		err := c.live.Get(ctx, client.ObjectKey{Namespace: in.CronJob.Namespace, Name: reference.Name}, existing)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("looking for Job %s: %w", reference.Name, err)
		}
		if err == nil && existing.UID == reference.UID && metav1.IsControlledBy(existing, in.CronJob) {
			c.gate.Await(in.CronJob.UID, existing.UID, gate.Written(c.jobs.Store, existing))
			return pass.ErrStale
		}
	}
	return nil
}

func (c *Controller) delete(ctx context.Context, cronJob *batchv1.CronJob, jobs []*batchv1.Job) error {
	for _, job := range jobs {
		if err := c.jobs.Delete(ctx, cronJob.UID, job.DeepCopy()); err != nil {
			return fmt.Errorf("deleting Job %s: %w", job.Name, err)
		}
		c.recorder.Record(cronJob, deleted(job.Name))
	}
	return nil
}

// start makes the Job, after those that it replaces are gone. It returns none if there is nothing to add to the
// status: the namespace is going, or the name is taken.
func (c *Controller) start(ctx context.Context, cronJob *batchv1.CronJob, start *Start) (*batchv1.Job, error) {
	if err := c.delete(ctx, cronJob, start.Replaced); err != nil {
		return nil, err
	}
	job := start.Job.DeepCopy()
	switch err := c.jobs.Create(ctx, cronJob.UID, job); {
	case err == nil:
		c.recorder.Record(cronJob, created(job.Name))
		return job, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, nil
	case apierrors.IsAlreadyExists(err):
		return nil, c.resolve(ctx, cronJob, start)
	default:
		c.recorder.Record(cronJob, createFailed(err))
		return nil, fmt.Errorf("creating Job %s: %w", job.Name, err)
	}
}

// resolve finds out whose the Job is that has the planned one's name. If it is this CronJob's own, the cache was
// behind.
func (c *Controller) resolve(ctx context.Context, cronJob *batchv1.CronJob, start *Start) error {
	existing := &batchv1.Job{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(start.Job), existing); err != nil {
		return fmt.Errorf("looking at the Job that has the name: %w", err)
	}
	if metav1.IsControlledBy(existing, cronJob) {
		c.gate.Await(cronJob.UID, existing.UID, gate.Written(c.jobs.Store, existing))
		return pass.ErrStale
	}
	c.recorder.Record(cronJob, nameTaken(existing.Name))
	return errNameTaken
}
