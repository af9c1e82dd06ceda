package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/workload-controllers/internal/adopt"
	"keelson.dev/services/workload-controllers/internal/gate"
)

// settle adopts and releases ReplicaSets.
func (c *Controller) settle(ctx context.Context, in Input, plan Plan) error {
	if len(plan.Claims.Adopt) > 0 {
		if err := c.confirm(ctx, in.Deployment); err != nil {
			return err
		}
	}
	claimant := owner(in.Deployment)
	var errs []error
	for _, set := range plan.Claims.Adopt {
		errs = append(errs, c.patchOwner(ctx, in, set, adopt.TakePatch(claimant, set)))
	}
	for _, set := range plan.Claims.Release {
		errs = append(errs, c.patchOwner(ctx, in, set, adopt.ReleasePatch(claimant, set)))
	}
	return errors.Join(errs...)
}

// confirm makes sure that the Deployment still exists: one that is gone or going must not adopt.
func (c *Controller) confirm(ctx context.Context, deployment *appsv1.Deployment) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(deployment), live); err != nil {
		return fmt.Errorf("confirming before adoption: %w", err)
	}
	if live.UID != deployment.UID || live.DeletionTimestamp != nil {
		return fmt.Errorf("confirming before adoption: the Deployment with UID %s is gone or being deleted", deployment.UID)
	}
	return nil
}

// patchOwner changes a ReplicaSet's owner references. One that is gone, or is not the one that was meant any more, is
// passed over.
func (c *Controller) patchOwner(ctx context.Context, in Input, set *appsv1.ReplicaSet, patch []byte) error {
	next := set.DeepCopy()
	err := c.write(in.Deployment, "replicaset.patch", func() (client.Object, gate.Store, error) {
		return next, c.replicaSets, c.client.Patch(ctx, next, client.RawPatch(types.StrategicMergePatchType, patch))
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("changing the owner of ReplicaSet %s: %w", set.Name, err)
}

// write carries out one request between its failpoints and shuts the gate until the cache shows the object that came back.
func (c *Controller) write(deployment *appsv1.Deployment, place string, request func() (client.Object, gate.Store, error)) error {
	return failpoint.Around("workload-controllers/"+place, func() error {
		object, store, err := request()
		if err == nil && object != nil {
			c.gate.Await(deployment.UID, object.GetUID(), gate.Written(store, object))
		}
		return err
	})
}
