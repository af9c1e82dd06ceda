// Package inproc runs an apiserver inside another process.
package inproc

import (
	"context"

	"go.uber.org/zap"

	"keelson.dev/services/apiserver/internal/app"
)

// Config are the settings; NewConfig gives the defaults.
type Config = app.Config

// Handle is a running apiserver.
type Handle = app.Handle

// NewConfig returns the defaults of all settings.
func NewConfig() *Config { return app.NewConfig() }

// Start runs an apiserver until ctx ends or the handle is stopped. It returns when the server is ready, or with what
// kept it from becoming so.
func Start(ctx context.Context, config *Config, log *zap.Logger) (*Handle, error) {
	return app.Start(ctx, config, log)
}
