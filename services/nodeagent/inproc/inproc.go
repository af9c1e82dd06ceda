// Package inproc runs a nodeagent inside another process: a real one, or a simulated one whose containers exist in
// memory.
package inproc

import (
	"context"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/nodeagent/internal/app"
)

// Config is what a nodeagent needs. Start from NewConfig.
type Config = app.Config

// NewConfig returns the defaults of a node of the name. REST must be set, for a simulated node RootDir and LogsDir, and
// where Port is not 0 what the node API needs.
func NewConfig(nodeName string) Config { return app.Defaults(nodeName) }

// Start starts a nodeagent that runs until ctx ends or the handle is stopped. Its containers run on.
func Start(ctx context.Context, c Config) *daemon.Handle {
	return daemon.Go(ctx, func(ctx context.Context) error { return app.Run(ctx, c) })
}
