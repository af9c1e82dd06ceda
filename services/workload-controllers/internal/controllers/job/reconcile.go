package job

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/rank"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller runs Jobs.
type Controller struct {
	client client.Client // reads from the cache
	live   client.Reader // reads from the apiserver
	jobs   toolscache.Indexer
	writer *write.Writer
	pods   *podset.Index
	// open are the Pods of Jobs that have not ended, done those that have ended and still have the finalizer.
	open, done podset.Figure
	owners     wake.Owners
	ops        *podops.Operator
	gate       *gate.Gate
	recorder   podops.Recorder
	now        func() time.Time

	mu      sync.Mutex // guards what follows
	written map[types.UID]time.Time
	// since is the resource version of the Pods when this process took over; empty until it is needed.
	since string
}

// steps are what a pass over a Job consists of.
func (c *Controller) steps() *pass.Steps[*batchv1.Job, Input, Plan] {
	return &pass.Steps[*batchv1.Job, Input, Plan]{
		Reader: c.client, New: func() *batchv1.Job { return &batchv1.Job{} }, Gate: c.gate, Observe: c.observe,
		Decide: Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// isManaged reports whether this controller runs the Job.
func isManaged(job *batchv1.Job) bool {
	if by := job.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName {
		return false
	}
	mode := job.Spec.CompletionMode
	return mode == nil || *mode == batchv1.NonIndexedCompletion || isIndexed(job)
}

// observe reads the input of a decision. All of it is shared with the cache.
func (c *Controller) observe(_ context.Context, job *batchv1.Job) (Input, bool, error) {
	if !isManaged(job) {
		return Input{}, false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		err = fmt.Errorf("reading spec.selector of Job %s/%s: %w", job.Namespace, job.Name, err)
		return Input{}, false, reconcile.TerminalError(err)
	}
	own := podset.Owner(job.UID)
	in := Input{Now: c.now(), Job: job, Selector: selector, Written: c.lastWritten(job.UID),
		Pods: slices.Concat(c.pods.Pods(own, c.open), c.pods.Pods(own, c.done))}
	if isFinished(job) {
		return in, true, nil
	}
	if job.DeletionTimestamp == nil {
		in.Orphans = c.pods.Orphans(job.Namespace, selector)
	}
	if c.pods.Count(own, podset.Failed) > 0 {
		in.Ended = endings(c.pods.Pods(own, podset.Terminal))
	}
	if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
		for _, uid := range slices.Concat(uncounted.Succeeded, uncounted.Failed) {
			if c.pods.Get(uid) == nil {
				in.Absent = append(in.Absent, uid)
			}
		}
	}
	return in, true, nil
}

// apply carries out the plan in the order of its fields and stops at the first failure.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if plan.Reason == ReasonOwners {
		return c.ops.Settle(ctx, c.live, owner(in.Job), plan.Adopt, plan.Release, tracking)
	}
	if plan.WriteStatus {
		if err := c.confirm(ctx, in, plan); err != nil {
			return err
		}
		if err := c.writeStatus(ctx, in, plan.Status); err != nil {
			return err
		}
	}
	if err := c.ops.PatchFinalizers(ctx, in.Job.UID, plan.Untrack, untrack); err != nil {
		return err
	}
	if err := c.ops.PatchFinalizers(ctx, in.Job.UID, tracked(plan.Remove), untrackUnchanged); err != nil {
		return err
	}
	if err := c.delete(ctx, in.Job, podops.ScaledDown, plan.Remove); err != nil {
		return err
	}
	if err := c.delete(ctx, in.Job, podops.OwnerFinished, plan.End); err != nil {
		return err
	}
	if err := c.create(ctx, in.Job, plan.Create); err != nil {
		return err
	}
	for _, event := range plan.Events {
		c.recorder.Record(in.Job, event)
	}
	return nil
}

func untrack(pod *corev1.Pod) []byte { return claim.FinalizerPatch(pod, tracking) }

// untrackUnchanged removes the finalizer from a Pod unless the Pod has changed: if it has ended meanwhile, it must
// be counted.
func untrackUnchanged(pod *corev1.Pod) []byte { return claim.UnchangedFinalizerPatch(pod, tracking) }

func (c *Controller) delete(ctx context.Context, job *batchv1.Job, reason podops.Reason, pods []*corev1.Pod) error {
	doomed := make([]rank.Pod, len(pods))
	for i, pod := range pods {
		doomed[i] = rank.Of(pod)
	}
	outcomes := c.ops.Delete(ctx, job.UID, reason, doomed)
	podops.RecordDeleted(c.recorder, job, outcomes)
	err := podops.Failure(outcomes)
	if err != nil {
		c.recorder.Record(job, deleteFailed(err))
	}
	return err
}

// create creates Pods. In a namespace that is being deleted the creations fail, which is not reported.
func (c *Controller) create(ctx context.Context, job *batchv1.Job, creations []Creation) error {
	if len(creations) == 0 {
		return nil
	}
	alike := prototype(job)
	outcomes := c.ops.Create(ctx, job.UID, len(creations), func(i int) (*corev1.Pod, error) {
		return podOf(job, alike, creations[i]), nil
	})
	podops.RecordCreated(c.recorder, job, outcomes)
	err := podops.Failure(outcomes)
	if err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	c.recorder.Record(job, createFailed(err))
	return err
}

func (c *Controller) writeStatus(ctx context.Context, in Input, status batchv1.JobStatus) error {
	of := func(job *batchv1.Job) *batchv1.JobStatus { return &job.Status }
	written, err := write.Status(ctx, c.writer, in.Job, status, of)
	if written {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.written[in.Job.UID] = in.Now
	}
	return err
}

func (c *Controller) lastWritten(uid types.UID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written[uid]
}
