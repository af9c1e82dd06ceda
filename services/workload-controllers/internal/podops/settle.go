package podops

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/services/workload-controllers/internal/claim"
)

// Settle adopts and releases Pods. An adoption asks the server first.
func (o *Operator) Settle(
	ctx context.Context, server client.Reader, owner claim.Owner, adopt, release []*corev1.Pod,
) error {
	if len(adopt) > 0 {
		if err := claim.Confirm(ctx, server, owner); err != nil {
			return err
		}
	}
	var errs []error
	for _, pod := range adopt {
		errs = append(errs, claim.IgnoreGone(o.PatchOwner(ctx, owner.UID, pod, claim.AdoptPatch(owner, pod))))
	}
	for _, pod := range release {
		errs = append(errs, claim.IgnoreGone(o.PatchOwner(ctx, owner.UID, pod, claim.ReleasePatch(owner, pod))))
	}
	return errors.Join(errs...)
}
