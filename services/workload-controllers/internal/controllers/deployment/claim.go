package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/workload-controllers/internal/adopt"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/gate"
)

// settle adopts and releases ReplicaSets.
func (c *Controller) settle(ctx context.Context, in Input, plan Plan) error {
	claimant := owner(in.Deployment)
	if len(plan.Claims.Adopt) > 0 {
		if err := claim.Confirm(ctx, c.live, claimant); err != nil {
			return err
		}
	}
	var errs []error
	for _, set := range plan.Claims.Adopt {
		errs = append(errs, c.patchOwner(ctx, in, set, adopt.TakePatch(claimant, set)))
	}
	for _, set := range plan.Claims.Release {
		errs = append(errs, c.patchOwner(ctx, in, set, adopt.ReleasePatch(claimant, set)))
	}
	return errors.Join(errs...)
}

// patchOwner changes a ReplicaSet's owner references.
func (c *Controller) patchOwner(ctx context.Context, in Input, set *appsv1.ReplicaSet, patch []byte) error {
	next := set.DeepCopy()
	err := c.write(in.Deployment, "replicaset.patch", func() (client.Object, gate.Store, error) {
		return next, c.replicaSets, c.client.Patch(ctx, next, client.RawPatch(types.StrategicMergePatchType, patch))
	})
	if claim.IgnoreGone(err) != nil {
		return fmt.Errorf("changing the owner of ReplicaSet %s: %w", set.Name, err)
	}
	return nil
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
