// Package secret provides a Secret as files in memory only.
package secret

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/projection"
)

// Kind is the volume.Kind of secret.
type Kind struct {
	Sources volume.Sources
	Mounter volume.Mounter
}

// Name implements volume.Kind.
func (Kind) Name() string { return "secret" }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.Secret != nil }

// SetUp implements volume.Kind.
func (k Kind) SetUp(ctx context.Context, request volume.Request) (volume.Result, error) {
	source := request.Volume.Secret
	files, err := projection.Secret(ctx, k.Sources, request.Pod.Namespace, source.SecretName, projection.Keys{
		Items:       source.Items,
		DefaultMode: ptr.Deref(source.DefaultMode, projection.DefaultMode),
		Optional:    ptr.Deref(source.Optional, false),
	})
	if err != nil {
		return volume.Result{}, err
	}
	return projection.Publish(k.Mounter, request, files)
}
