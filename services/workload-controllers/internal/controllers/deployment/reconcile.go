package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller rolls Deployments out.
type Controller struct {
	client      client.Client // reads from the cache
	live        client.Reader // reads from the apiserver
	deployments *write.Writer
	replicaSets *write.Writer
	sets        ownerindex.Index[*appsv1.ReplicaSet]
	pods        *podset.Index
	owners      wake.Owners
	gate        *gate.Gate
	recorder    recorder
	log         *zap.Logger
	now         func() time.Time
}

// steps are what a pass over a Deployment consists of.
func (c *Controller) steps() *pass.Steps[*appsv1.Deployment, Input, Plan] {
	return &pass.Steps[*appsv1.Deployment, Input, Plan]{
		Reader: c.client, New: func() *appsv1.Deployment { return &appsv1.Deployment{} }, Gate: c.gate,
		Observe: func(_ context.Context, d *appsv1.Deployment) (Input, bool, error) { return c.observe(d), true, nil },
		Decide:  Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe reads the input of a decision. All of it is shared with the cache.
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
		return claim.Settle(ctx, c.live, c.replicaSets, owner(in.Deployment), plan.Claims)
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
	err := c.replicaSets.Create(ctx, in.Deployment.UID, set)
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
		c.gate.Await(in.Deployment.UID, existing.UID, gate.Written(c.replicaSets.Store, existing))
		return pass.ErrStale
	}
	c.log.Info("template hash collides", zap.Stringer("deployment", client.ObjectKeyFromObject(in.Deployment)),
		zap.String("replicaSet", existing.Name))
	if err := c.writeStatus(ctx, in.Deployment, afterCollision(in)); err != nil {
		return err
	}
	return pass.ErrStale
}

func (c *Controller) update(ctx context.Context, in Input, update Update) error {
	from, to := sizeOf(update.From), sizeOf(update.To)
	next := update.To.DeepCopy()
	if err := c.replicaSets.Update(ctx, in.Deployment.UID, next); err != nil {
		return fmt.Errorf("updating ReplicaSet %s (%s): %w", next.Name, update.Reason, err)
	}
	if from != to {
		c.recorder.Record(in.Deployment, scaled(next.Name, from, to))
	}
	return nil
}

func (c *Controller) delete(ctx context.Context, in Input, deletion Deletion) error {
	set := deletion.ReplicaSet
	if err := c.replicaSets.Delete(ctx, in.Deployment.UID, set.DeepCopy()); err != nil {
		return fmt.Errorf("deleting ReplicaSet %s (%s): %w", set.Name, deletion.Reason, err)
	}
	return nil
}

func (c *Controller) writeStatus(ctx context.Context, deployment *appsv1.Deployment,
	status appsv1.DeploymentStatus) error {
	of := func(d *appsv1.Deployment) *appsv1.DeploymentStatus { return &d.Status }
	_, err := write.Status(ctx, c.deployments, deployment, status, of)
	return err
}

func (c *Controller) writeRevision(ctx context.Context, deployment *appsv1.Deployment, number string) error {
	if number == "" {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, revisionPatch(number))
	if err := c.deployments.Patch(ctx, deployment.UID, deployment.DeepCopy(), patch); err != nil {
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
	if err := c.deployments.Update(ctx, in.Deployment.UID, next); err != nil {
		return fmt.Errorf("rolling back (%s): %w", rollback.Reason, err)
	}
	c.recorder.Record(in.Deployment, rollback.Event)
	return nil
}
