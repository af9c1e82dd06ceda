package replicas

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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/pass"
	"keelson.dev/kit/seconds"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller keeps the objects of one kind at their number of Pods.
type Controller[O client.Object] struct {
	kind     *Kind[O]
	client   client.Client // reads from the cache
	live     client.Reader // reads from the apiserver
	writer   *write.Writer
	sets     ownerindex.Index[O]
	pods     *podset.Index
	owners   wake.Owners
	ops      *podops.Operator
	gate     *gate.Gate
	recorder podops.Recorder
	now      func() time.Time

	mu      sync.Mutex // guards written
	written map[types.UID]time.Time
}

// observed is an object with what a pass over it decides by.
type observed[O client.Object] struct {
	Input
	object O
}

// steps are what a pass over an object consists of.
func (c *Controller[O]) steps() *pass.Steps[O, observed[O], Plan] {
	return &pass.Steps[O, observed[O], Plan]{
		Reader: c.client, New: c.kind.New, Gate: c.gate, Observe: c.observe,
		Decide: func(in observed[O]) Plan { return Decide(in.Input) }, Apply: c.apply,
		After: func(in observed[O], plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe reads the input of a decision.
func (c *Controller[O]) observe(_ context.Context, object O) (observed[O], bool, error) {
	set := c.kind.Set(object)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		err = fmt.Errorf("reading spec.selector of %s %s/%s: %w", c.kind.GVK.Kind, set.Namespace, set.Name, err)
		return observed[O]{}, false, reconcile.TerminalError(err)
	}
	now := c.now()
	in := Input{Now: now, ReplicaSet: set, Written: c.lastWritten(set.UID)}
	in.Counts = c.pods.Observe(set.UID, podset.Spec{
		Selector: selector, Template: set.Spec.Template.Labels,
		MinReady: seconds.Of(set.Spec.MinReadySeconds),
	}, now)
	if c.kind.LacksTerminating {
		set.Status.TerminatingReplicas = &in.Counts.Terminating
	}
	if set.DeletionTimestamp == nil {
		in.Orphans = c.pods.Orphans(set.Namespace, selector)
	}
	switch surplus := surplus(set, in.Counts); {
	case surplus > 0:
		in.Candidates = c.pods.Ranked(set.UID, c.sets.Siblings(object))
	case surplus < 0:
		in.Made = c.pods.Made(set.UID)
	}
	return observed[O]{in, object}, true, nil
}

// apply carries out the plan in the order of its fields. What the pass came to is in the status even where it failed.
func (c *Controller[O]) apply(ctx context.Context, in observed[O], plan Plan) error {
	if plan.Reason == ReasonOwners {
		return c.ops.Settle(ctx, c.live, owner(in.ReplicaSet, c.kind.GVK), plan.Adopt, plan.Release)
	}
	failed := c.scale(ctx, in, plan)
	if failed.err != nil {
		c.recorder.Record(in.object, scalingFailed(failed.reason, failed.message()))
		plan.Status, plan.WriteStatus = withFailure(in.Input, failed.reason, failed.message()), true
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
func (c *Controller[O]) scale(ctx context.Context, in observed[O], plan Plan) failure {
	if plan.Create > 0 {
		alike := prototype(in.ReplicaSet, c.kind.GVK)
		outcomes := c.ops.Create(ctx, in.ReplicaSet.UID, plan.Create, func(int) (*corev1.Pod, error) {
			return alike, nil
		})
		podops.RecordCreated(c.recorder, in.object, outcomes)
		if err := podops.Failure(outcomes); err != nil && !apierrors.HasStatusCause(err,
			corev1.NamespaceTerminatingCause) {
			return failure{reason: reasonFailedCreate, doing: "creating", err: err}
		}
	}
	if len(plan.Delete) > 0 {
		outcomes := c.ops.Delete(ctx, in.ReplicaSet.UID, podops.ScaledDown, plan.Delete)
		podops.RecordDeleted(c.recorder, in.object, outcomes)
		if err := podops.Failure(outcomes); err != nil {
			return failure{reason: reasonFailedDelete, doing: "deleting", err: err}
		}
	}
	return failure{}
}

func (c *Controller[O]) writeStatus(ctx context.Context, in observed[O], status appsv1.ReplicaSetStatus) error {
	written, err := c.kind.WriteStatus(ctx, c.writer, in.object, status)
	if written {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.written[in.object.GetUID()] = in.Now
	}
	return err
}

func (c *Controller[O]) lastWritten(uid types.UID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written[uid]
}

// forget drops what is remembered about an object that is gone.
func (c *Controller[O]) forget(object O) {
	c.owners.Selectors.Remove(object)
	c.gate.Forget(object.GetUID())
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, object.GetUID())
}
