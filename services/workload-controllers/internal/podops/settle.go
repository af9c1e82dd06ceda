package podops

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/services/workload-controllers/internal/claim"
)

// Settle adopts and releases Pods, which get and lose the finalizers with that. An adoption asks the server first.
func (o *Operator) Settle(
	ctx context.Context, server client.Reader, owner claim.Owner, adopt, release []*corev1.Pod, finalizers ...string,
) error {
	if len(adopt) > 0 {
		if err := claim.Confirm(ctx, server, owner); err != nil {
			return err
		}
	}
	var errs []error
	for _, pod := range adopt {
		patch := claim.AdoptPatch(owner, pod, finalizers...)
		errs = append(errs, claim.IgnoreGone(o.PatchOwner(ctx, owner.UID, pod, patch)))
	}
	for _, pod := range release {
		patch := claim.ReleasePatch(owner, pod, finalizers...)
		errs = append(errs, claim.IgnoreGone(o.PatchOwner(ctx, owner.UID, pod, patch)))
	}
	return errors.Join(errs...)
}
