// Package inproc runs a scheduler inside another process.
package inproc

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/app"
)

// Config is what a scheduler needs. Only REST must be set.
type Config = app.Config

// Start starts a scheduler that runs until ctx ends or the handle is stopped.
func Start(ctx context.Context, c Config) *daemon.Handle {
	return daemon.Go(ctx, func(ctx context.Context) error { return app.Run(ctx, c) })
}

// Rules are all that the scheduler does at the apiserver.
func Rules() []rbacv1.PolicyRule { return app.Rules() }
