package csivolume

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"keelson.dev/services/nodeagent/internal/csiplugin"
)

// liar is a driver that reports success for everything and does something else.
type liar struct{ does func() }

func (liar) Can() csiplugin.Capabilities                                    { return csiplugin.Capabilities{} }
func (liar) Stage(context.Context, *csi.NodeStageVolumeRequest) error       { return nil }
func (l liar) Publish(context.Context, *csi.NodePublishVolumeRequest) error { l.does(); return nil }
func (liar) Unpublish(context.Context, string, string) error                { return nil }
func (liar) Expand(context.Context, *csi.NodeExpandVolumeRequest) error     { return nil }
func (liar) Unstage(context.Context, string, string) error                  { return nil }
