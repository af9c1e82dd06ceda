package claim

import (
	"context"
	"fmt"

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

// IgnoreGone passes over an object that is gone, or is not the one that was meant any more.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}
