package claim

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/services/workload-controllers/internal/write"
)

// Settle adopts and releases objects of the writer's kind. An adoption asks the server first.
func Settle[O client.Object](
	ctx context.Context, server client.Reader, writer *write.Writer, owner Owner, claims Claims[O],
) error {
	if len(claims.Adopt) > 0 {
		if err := Confirm(ctx, server, owner); err != nil {
			return err
		}
	}
	patchOwner := func(object O, patch []byte) error {
		strategic, changed := client.RawPatch(types.StrategicMergePatchType, patch), object.DeepCopyObject().(O)
		if err := IgnoreGone(writer.Patch(ctx, owner.UID, changed, strategic)); err != nil {
			return fmt.Errorf("changing the owner of %s %s: %w", writer.Kind, object.GetName(), err)
		}
		return nil
	}
	var errs []error
	for _, object := range claims.Adopt {
		errs = append(errs, patchOwner(object, AdoptPatch(owner, object)))
	}
	for _, object := range claims.Release {
		errs = append(errs, patchOwner(object, ReleasePatch(owner, object)))
	}
	return errors.Join(errs...)
}
