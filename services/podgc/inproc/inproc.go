// Package inproc runs podgc inside another process.
package inproc

import (
	"context"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/podgc/internal/app"
)

// Config is what podgc needs. Only REST must be set.
type Config = app.Config

// Start starts podgc which runs until ctx ends or the handle is stopped.
func Start(ctx context.Context, c Config) *daemon.Handle {
	return daemon.Go(ctx, func(ctx context.Context) error { return app.Run(ctx, c) })
}
