package statefulset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"keelson.dev/kit/pass"
)

// makeClaims creates claims. If a claim exists, it stays as it is, and the next pass looks at it.
func (c *Controller) makeClaims(ctx context.Context, set *appsv1.StatefulSet, claims []NewClaim) error {
	for _, made := range claims {
		err := c.claimWriter.Create(ctx, set.UID, made.Claim.DeepCopy())
		switch {
		case err == nil:
			c.recorder.Record(set, claimCreated(set, made))
		case apierrors.IsAlreadyExists(err):
			return pass.ErrStale
		default:
			c.recorder.Record(set, claimRefused(set, made, err))
			return fmt.Errorf("creating PersistentVolumeClaim %s: %w", made.Claim.Name, err)
		}
	}
	return nil
}

// changeOwners changes the owners of claims that are still as they were observed.
func (c *Controller) changeOwners(ctx context.Context, set *appsv1.StatefulSet,
	claims []*corev1.PersistentVolumeClaim) error {
	for _, changed := range claims {
		err := c.claimWriter.Update(ctx, set.UID, changed.DeepCopy())
		if apierrors.IsNotFound(err) {
			return pass.ErrStale
		}
		if err != nil {
			return fmt.Errorf("changing the owners of PersistentVolumeClaim %s: %w", changed.Name, err)
		}
	}
	return nil
}
