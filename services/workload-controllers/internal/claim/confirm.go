package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Confirm asks the server whether the owner still exists: one that is gone or going must not adopt.
func Confirm(ctx context.Context, server client.Reader, owner Owner) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(owner.Kind)
	if err := server.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, live); err != nil {
		return fmt.Errorf("confirming before adoption: %w", err)
	}
	if live.UID != owner.UID || live.DeletionTimestamp != nil {
		return fmt.Errorf("confirming before adoption: the %s with UID %s is gone or being deleted", owner.Kind.Kind,
			owner.UID)
	}
	return nil
}

// IgnoreGone passes over an object that is gone, or is not the one that was meant any more: a patch names the UID,
// which does not change. Any other refusal of a patch is an error.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) && namesUID(err) {
		return nil
	}
	return err
}

func namesUID(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}
