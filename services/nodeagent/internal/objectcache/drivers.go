package objectcache

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CSIDriver returns the object of a driver. It is read once per volume that is set up, so it is not followed;
// neither are the objects that the other methods here return.
func (c *Cache) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return c.client.StorageV1().CSIDrivers().Get(ctx, name, metav1.GetOptions{})
}

// VolumeAttachment returns the object that attaches a volume to the node.
func (c *Cache) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return c.client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
}

// ResourceClaim returns a claim of devices of one of the node's Pods.
func (c *Cache) ResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	return c.client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ClaimNow returns a claim of the node's Pods as it is now.
func (c *Cache) ClaimNow(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// VolumeNow returns the volume of such a claim as it is now.
func (c *Cache) VolumeNow(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return c.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
}

// PatchClaimStatus applies a merge patch to the status of such a claim.
func (c *Cache) PatchClaimStatus(ctx context.Context, namespace, name string,
	patch []byte) (*corev1.PersistentVolumeClaim, error) {
	return c.client.CoreV1().PersistentVolumeClaims(namespace).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
}

// DriverSecret returns the credentials for the driver of a volume of the node's Pods.
func (c *Cache) DriverSecret(ctx context.Context, ref corev1.SecretReference) (*corev1.Secret, error) {
	return c.client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}
