// Package image gives containers the content of images as volumes. The runtime mounts them when it makes the container;
// they are pulled as its own image is.
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

// SetUp implements volume.Kind. There is nothing to set up: which image it is shows when a container is made.
func (Kind) SetUp(context.Context, volume.Request) (volume.Result, error) {
	return volume.Result{Image: true, ReadOnly: true}, nil
}
