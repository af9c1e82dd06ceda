package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Claim reads a claim at a resource version, as Volume does. It is shared, too.
type Claim func(ctx context.Context, namespace, name, resourceVersion string) (*corev1.PersistentVolumeClaim, error)

// Attachment reads a VolumeAttachment at a resource version, as Volume does. It is shared, too.
type Attachment func(ctx context.Context, name, resourceVersion string) (*storagev1.VolumeAttachment, error)

// askDrivers decides by the volumes that the node's Pods claim, at most as many as it has Pods.
func (o Objects) askDrivers(ctx context.Context, node string, r request) (verdict, error) {
	pods, err := o.Pods(ctx, node, "", "")
	if err != nil {
		return verdict{}, fmt.Errorf("listing the pods of node %q: %w", node, err)
	}
	for _, ref := range claims(node, pods) {
		claim, err := o.Claim(ctx, ref.Namespace, ref.Name, "")
		if err == nil && claim.Spec.VolumeName == "" {
			continue
		}
		var volume *corev1.PersistentVolume
		if err == nil {
			volume, err = o.Volume(ctx, claim.Spec.VolumeName, "")
		}
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return verdict{}, fmt.Errorf("reading the volume of claim %s/%s: %w", ref.Namespace, ref.Name, err)
		case handsToNode(r, claim, volume):
			return allow, nil
		}
	}
	return refuse(unrelated, node), nil
}
