// Package image gives containers the contents of images as volumes. The runtime mounts them when it creates the
// container; they are pulled like the container's own image.
package image

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/volume"
)

// Kind is the volume.Kind of image.
type Kind struct{}

// Name implements volume.Kind.
func (Kind) Name() string { return "image" }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.Image != nil }

// SetUp implements volume.Kind. It sets up nothing: the image is determined when a container is created.
func (Kind) SetUp(context.Context, volume.Request) (volume.Result, error) {
	return volume.Result{Image: true, ReadOnly: true}, nil
}
