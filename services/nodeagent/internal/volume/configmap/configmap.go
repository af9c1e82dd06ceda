// Package configmap provides a ConfigMap as files.
package configmap

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/projection"
)

// Kind is the volume.Kind of configMap.
type Kind struct{ Sources volume.Sources }

// Name implements volume.Kind.
func (Kind) Name() string { return "configMap" }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.ConfigMap != nil }

// SetUp implements volume.Kind.
func (k Kind) SetUp(ctx context.Context, request volume.Request) (volume.Result, error) {
	source := request.Volume.ConfigMap
	files, err := projection.ConfigMap(ctx, k.Sources, request.Pod.Namespace, source.Name, projection.Keys{
		Items:       source.Items,
		DefaultMode: ptr.Deref(source.DefaultMode, projection.DefaultMode),
		Optional:    ptr.Deref(source.Optional, false),
	})
	if err != nil {
		return volume.Result{}, err
	}
	return projection.Publish(nil, request, files)
}
