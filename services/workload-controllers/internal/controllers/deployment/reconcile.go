package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podset"
)

// recheck is when to look again at an object whose own writes the cache does not show yet, should no event come.
const recheck = time.Second

// errStale ends a pass whose picture was wrong: the next one starts from a newer picture.
var errStale = errors.New("the cache was behind")

// recorder tells users what happened; events.Recorder is one.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller rolls Deployments out.
type Controller struct {
	client      client.Client // reads from the cache
	live        client.Reader // reads from the apiserver
	deployments gate.Store
	replicaSets gate.Store
	sets        ownerindex.Index
	pods        *podset.Index
	gate        *gate.Gate
	recorder    recorder
	log         *zap.Logger
	now         func() time.Time
}

// Reconcile makes one pass: read, decide, apply.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := c.client.Get(ctx, request.NamespacedName, deployment); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.gate.IsOpen(deployment.UID) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	in := c.observe(deployment)
	plan := Decide(in)
	if err := c.apply(ctx, in, plan); err != nil {
		if apierrors.IsConflict(err) || errors.Is(err, errStale) {
			return reconcile.Result{RequeueAfter: recheck}, nil // the newer object is on its way
		}
		return reconcile.Result{}, err
	}
	if plan.Wake.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(plan.Wake.Sub(in.Now), time.Millisecond)}, nil
}

// observe gathers the input of a decision. All of it is shared with the cache.
func (c *Controller) observe(deployment *appsv1.Deployment) Input {
	in := Input{Now: c.now(), Deployment: deployment}
	owned := c.sets.Owned(deployment.UID)
	in.ReplicaSets = append(owned, c.sets.Unowned(deployment.Namespace)...)
	if deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		in.Unfinished = make(map[types.UID]int, len(owned))
		for _, set := range owned {
			in.Unfinished[set.UID] = c.pods.Unfinished(set.UID)
		}
	}
	return in
}

// apply carries out the plan in the order of its fields and stops at the first failure.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if !plan.Claims.Settled() {
		return c.settle(ctx, in, plan)
	}
	if plan.Rollback != nil {
		return c.rollback(ctx, in, plan.Rollback)
	}
	if err := c.create(ctx, in, plan.Create); err != nil {
		return err
	}
	for _, update := range plan.Updates {
		if err := c.update(ctx, in, update); err != nil {
			return err
		}
	}
	for _, deletion := range plan.Deletes {
		if err := c.delete(ctx, in, deletion); err != nil {
			return err
		}
	}
	if err := c.writeStatus(ctx, in.Deployment, plan.Status); err != nil {
		return err
	}
	return c.writeRevision(ctx, in.Deployment, plan.Revision)
}

// create makes the ReplicaSet of the current template. A name that is taken is settled here: by this Deployment's own
// ReplicaSet the cache was behind, by another's the hash collides and the next pass uses another.
func (c *Controller) create(ctx context.Context, in Input, creation *Creation) error {
	if creation == nil {
		return nil
	}
	set := creation.ReplicaSet.DeepCopy()
	err := c.write(in.Deployment, "replicaset.create", func() (client.Object, gate.Store, error) {
		return set, c.replicaSets, c.client.Create(ctx, set)
	})
	switch {
	case err == nil:
		if size := sizeOf(set); size > 0 {
			c.recorder.Record(in.Deployment, scaled(set.Name, 0, size))
		}
		return nil
	case apierrors.IsAlreadyExists(err):
		return c.resolve(ctx, in, creation.ReplicaSet)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	default:
		c.recorder.Record(in.Deployment, createFailed(set.Name, err))
		return errors.Join(fmt.Errorf("creating ReplicaSet %s: %w", set.Name, err),
			c.writeStatus(ctx, in.Deployment, afterFailedCreate(in, err.Error())))
	}
}

// resolve finds out whose the ReplicaSet is that has the planned one's name.
func (c *Controller) resolve(ctx context.Context, in Input, planned *appsv1.ReplicaSet) error {
	existing := &appsv1.ReplicaSet{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(planned), existing); err != nil {
		return fmt.Errorf("looking at the ReplicaSet that has the name: %w", err)
	}
	if isSameReplicaSet(planned, existing) {
		c.gate.Await(in.Deployment.UID, existing.UID, gate.Written(c.replicaSets, existing))
		return errStale
	}
	c.log.Info("template hash collides", zap.Stringer("deployment", client.ObjectKeyFromObject(in.Deployment)),
		zap.String("replicaSet", existing.Name))
	if err := c.writeStatus(ctx, in.Deployment, afterCollision(in)); err != nil {
		return err
	}
	return errStale
}

func (c *Controller) update(ctx context.Context, in Input, update Update) error {
	from, to := sizeOf(update.From), sizeOf(update.To)
	next := update.To.DeepCopy()
	err := c.write(in.Deployment, "replicaset.update", func() (client.Object, gate.Store, error) {
		return next, c.replicaSets, c.client.Update(ctx, next)
	})
	if err != nil {
		return fmt.Errorf("updating ReplicaSet %s (%s): %w", next.Name, update.Reason, err)
	}
	if from != to {
		c.recorder.Record(in.Deployment, scaled(next.Name, from, to))
	}
	return nil
}

func (c *Controller) delete(ctx context.Context, in Input, deletion Deletion) error {
	set := deletion.ReplicaSet
	err := c.write(in.Deployment, "replicaset.delete", func() (client.Object, gate.Store, error) {
		err := c.client.Delete(ctx, set.DeepCopy(), client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion},
			client.PropagationPolicy("Background"))
		return nil, nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("deleting ReplicaSet %s (%s): %w", set.Name, deletion.Reason, err)
	}
	c.gate.Await(in.Deployment.UID, set.UID, gate.Deleted(c.replicaSets, set))
	return nil
}

// writeStatus writes the status where it differs.
func (c *Controller) writeStatus(ctx context.Context, deployment *appsv1.Deployment, status appsv1.DeploymentStatus) error {
	if apiequality.Semantic.DeepEqual(deployment.Status, status) {
		return nil
	}
	next := deployment.DeepCopy()
	next.Status = status
	err := c.write(deployment, "deployment.status", func() (client.Object, gate.Store, error) {
		return next, c.deployments, c.client.Status().Update(ctx, next)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

func (c *Controller) writeRevision(ctx context.Context, deployment *appsv1.Deployment, number string) error {
	if number == "" {
		return nil
	}
	next := deployment.DeepCopy()
	err := c.write(deployment, "deployment.patch", func() (client.Object, gate.Store, error) {
		return next, c.deployments, c.client.Patch(ctx, next, client.RawPatch(types.MergePatchType, revisionPatch(number)))
	})
	if err != nil {
		return fmt.Errorf("writing the revision: %w", err)
	}
	return nil
}

func (c *Controller) rollback(ctx context.Context, in Input, rollback *Rollback) error {
	next := in.Deployment.DeepCopy()
	next.Annotations = rollback.Annotations
	if rollback.Template != nil {
		next.Spec.Template = *rollback.Template
	}
	err := c.write(in.Deployment, "deployment.update", func() (client.Object, gate.Store, error) {
		return next, c.deployments, c.client.Update(ctx, next)
	})
	if err != nil {
		return fmt.Errorf("rolling back (%s): %w", rollback.Reason, err)
	}
	c.recorder.Record(in.Deployment, rollback.Event)
	return nil
}
