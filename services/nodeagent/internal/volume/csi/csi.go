// Package csi gives containers the inline volumes of CSI drivers, which live as long as their Pod, and takes down
// all volumes of drivers, including those of claims: they are in the same folder.
package csi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/csivolume"
	"keelson.dev/services/nodeagent/internal/volume"
)

// Kind is the volume.Kind of csi.
type Kind struct{ Volumes *csivolume.Volumes }

// Name implements volume.Kind.
func (Kind) Name() string { return csivolume.KindName }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.CSI != nil }

// SetUp implements volume.Kind.
func (k Kind) SetUp(ctx context.Context, request volume.Request) (volume.Result, error) {
	source := csivolume.OfPod(request.Pod, request.Volume)
	path, err := k.Volumes.SetUp(ctx, source)
	return volume.Result{Path: path, ReadOnly: source.ReadOnly}, err
}

// TearDown implements volume.TearsDown.
func (k Kind) TearDown(ctx context.Context, pod types.UID, name, _ string) error {
	return k.Volumes.TearDown(ctx, pod, name)
}
