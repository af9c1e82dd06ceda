package ttlafterfinished

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/pass"
)

// collector takes one Job away at a time.
type collector struct {
	cached client.Reader
	live   client.Reader
	writer client.Writer
	now    func() time.Time
}

// steps are what a pass over a Job consists of.
func (c *collector) steps() *pass.Steps[*batchv1.Job, Input, Plan] {
	return &pass.Steps[*batchv1.Job, Input, Plan]{
		Reader: c.cached, New: func() *batchv1.Job { return &batchv1.Job{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe looks a second time, past the cache, at a Job that seems due: it may have been given more time, or be
// another Job of the name.
func (c *collector) observe(ctx context.Context, job *batchv1.Job) (Input, bool, error) {
	in := Input{Now: c.now(), Job: job}
	if !Decide(in).Delete {
		return in, true, nil
	}
	in.Job = &batchv1.Job{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(job), in.Job); err != nil {
		return Input{}, false, client.IgnoreNotFound(err)
	}
	return in, true, nil
}

// apply deletes the Job that was decided on, in that very version, and its Pods before it.
func (c *collector) apply(ctx context.Context, in Input, plan Plan) error {
	if !plan.Delete {
		return nil
	}
	job := in.Job
	return failpoint.Around("podgc/job.delete", func() error {
		err := c.writer.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
			client.PropagationPolicy("Foreground"))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Job %s/%s: %w", job.Namespace, job.Name, err)
		}
		return nil
	})
}
