// Package downwardapi provides fields of a Pod as files, which follow changes of its labels and annotations.
package downwardapi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/projection"
)

// Kind is the volume.Kind of downwardAPI.
type Kind struct{ Mounter volume.Mounter }

// Name implements volume.Kind.
func (Kind) Name() string { return "downwardAPI" }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.DownwardAPI != nil }

// SetUp implements volume.Kind.
func (k Kind) SetUp(_ context.Context, request volume.Request) (volume.Result, error) {
	source := request.Volume.DownwardAPI
	mode := ptr.Deref(source.DefaultMode, projection.DefaultMode)
	files, err := projection.Downward(request.View, source.Items, mode, request.Allocatable)
	if err != nil {
		return volume.Result{}, err
	}
	return projection.Publish(k.Mounter, request, files)
}
