package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/services/workload-controllers/internal/claim"
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
		errs = append(errs, c.patchOwner(ctx, in, set, claim.AdoptPatch(claimant, set)))
	}
	for _, set := range plan.Claims.Release {
		errs = append(errs, c.patchOwner(ctx, in, set, claim.ReleasePatch(claimant, set)))
	}
	return errors.Join(errs...)
}

// patchOwner changes a ReplicaSet's owner references.
func (c *Controller) patchOwner(ctx context.Context, in Input, set *appsv1.ReplicaSet, patch []byte) error {
	strategic := client.RawPatch(types.StrategicMergePatchType, patch)
	err := c.replicaSets.Patch(ctx, in.Deployment.UID, set.DeepCopy(), strategic)
	if claim.IgnoreGone(err) != nil {
		return fmt.Errorf("changing the owner of ReplicaSet %s: %w", set.Name, err)
	}
	return nil
}
