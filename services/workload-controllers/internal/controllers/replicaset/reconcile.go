package replicaset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/workload-controllers/internal/adopt"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
)

// recheck is when to look again at an object whose own writes the cache does not show yet, should no event come.
const recheck = time.Second

// told is how many Pods of one pass are told of, which is what client-go's recorder lets through at once.
const told = 25

// recorder tells users what happened; events.Recorder is one.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller keeps ReplicaSets at their number of Pods.
type Controller struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the apiserver
	store    gate.Store    // the cache's ReplicaSets
	sets     ownerindex.Index
	pods     *podset.Index
	ops      *podops.Operator
	gate     *gate.Gate
	recorder recorder
	now      func() time.Time

	mu      sync.Mutex // guards written
	written map[types.UID]time.Time
}

// Reconcile makes one pass: read, decide, apply.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &appsv1.ReplicaSet{}
	if err := c.client.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.gate.IsOpen(set.UID) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("reading spec.selector of %s: %w", request, err))
	}
	in := c.observe(set, selector)
	plan := Decide(in)
	if err := c.apply(ctx, in, plan, owner(set, selector)); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: recheck}, nil // the newer object is on its way
		}
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after(in.Now, plan)}, nil
}

// observe gathers the input of a decision.
func (c *Controller) observe(set *appsv1.ReplicaSet, selector labels.Selector) Input {
	now := c.now()
	in := Input{Now: now, ReplicaSet: set, Written: c.lastWritten(set.UID)}
	in.Tally = c.pods.Observe(set.UID, podset.Spec{
		Selector: selector, Template: set.Spec.Template.Labels,
		MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second,
	}, now)
	if set.DeletionTimestamp == nil {
		in.Orphans = c.pods.Orphans(set.Namespace, selector)
	}
	switch surplus := surplus(set, in.Tally); {
	case surplus > 0:
		in.Candidates = c.pods.Ranked(set.UID, c.sets.Siblings(set))
	case surplus < 0:
		in.Made = c.pods.Made(set.UID)
	}
	return in
}

// apply carries out the plan in the order of its fields. What the pass came to is in the status even where it failed.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan, owner adopt.Owner) error {
	if plan.Reason == ReasonOwners {
		return c.settle(ctx, in, plan, owner)
	}
	failed := c.scale(ctx, in, plan, owner)
	if failed.err != nil {
		c.recorder.Record(in.ReplicaSet, scalingFailed(failed.reason, failed.message()))
		plan.Status, plan.WriteStatus = withFailure(in, failed.reason, failed.message()), true
	}
	if !plan.WriteStatus {
		return failed.err
	}
	return errors.Join(failed.err, c.writeStatus(ctx, in, plan.Status))
}

// failure is why Pods could not be created or deleted. The zero value is success.
type failure struct {
	reason, doing string
	err           error
}

// message is what users read in the event and in the condition.
func (f failure) message() string { return fmt.Sprintf("Error %s: %v", f.doing, f.err) }

// scale creates or deletes Pods.
func (c *Controller) scale(ctx context.Context, in Input, plan Plan, owner adopt.Owner) failure {
	if plan.Create > 0 {
		outcomes := c.ops.Create(ctx, owner.UID, prototype(in.ReplicaSet, owner), plan.Create)
		c.record(in.ReplicaSet, outcomes, podCreated)
		if err := podops.Failure(outcomes); err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return failure{reason: reasonFailedCreate, doing: "creating", err: err}
		}
	}
	if len(plan.Delete) > 0 {
		outcomes := c.ops.Delete(ctx, owner.UID, plan.Delete)
		c.record(in.ReplicaSet, outcomes, podDeleted)
		if err := podops.Failure(outcomes); err != nil {
			return failure{reason: reasonFailedDelete, doing: "deleting", err: err}
		}
	}
	return failure{}
}

// record tells of the Pods of one pass, of the first told of them by name: beyond that the recorder drops a flood about one
// object, and each event would only be work.
func (c *Controller) record(set *appsv1.ReplicaSet, outcomes []podops.Outcome, event func(string) events.Event) {
	for _, outcome := range outcomes[:min(told, len(outcomes))] {
		if outcome.Err == nil {
			c.recorder.Record(set, event(outcome.Name))
		}
	}
}

// settle adopts and releases Pods.
func (c *Controller) settle(ctx context.Context, in Input, plan Plan, owner adopt.Owner) error {
	if len(plan.Adopt) > 0 {
		if err := claim.Confirm(ctx, c.live, owner); err != nil {
			return err
		}
	}
	var errs []error
	for _, pod := range plan.Adopt {
		errs = append(errs, claim.IgnoreGone(c.ops.PatchOwner(ctx, owner.UID, pod, adopt.TakePatch(owner, pod))))
	}
	for _, pod := range plan.Release {
		errs = append(errs, claim.IgnoreGone(c.ops.PatchOwner(ctx, owner.UID, pod, adopt.ReleasePatch(owner, pod))))
	}
	return errors.Join(errs...)
}

func (c *Controller) writeStatus(ctx context.Context, in Input, status appsv1.ReplicaSetStatus) error {
	next := in.ReplicaSet.DeepCopy()
	next.Status = status
	return failpoint.Around("workload-controllers/replicaset.status", func() error {
		if err := c.client.Status().Update(ctx, next); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("writing the status: %w", err)
		}
		c.gate.Await(next.UID, next.UID, gate.Written(c.store, next))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.written[next.UID] = in.Now
		return nil
	})
}

func (c *Controller) lastWritten(uid types.UID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written[uid]
}

// forget drops what is remembered about a ReplicaSet that is gone.
func (c *Controller) forget(uid types.UID) {
	c.gate.Forget(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, uid)
}

// after returns how long to wait for the plan's Wake.
func after(now time.Time, plan Plan) time.Duration {
	if plan.Wake.IsZero() {
		return 0
	}
	return max(plan.Wake.Sub(now), time.Millisecond)
}
