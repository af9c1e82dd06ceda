// Package inproc runs the workload controllers inside another process.
package inproc

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/workload-controllers/internal/app"
)

// Config is the configuration of the controllers. Only REST must be set.
type Config = app.Config

// Start starts the controllers, which run until ctx ends or the handle is stopped.
func Start(ctx context.Context, c Config) *daemon.Handle {
	return daemon.Go(ctx, func(ctx context.Context) error { return app.Run(ctx, c) })
}

// Rules returns the access that the named controllers need at the apiserver; without names, that of all controllers.
func Rules(names ...string) []rbacv1.PolicyRule { return app.Rules(names...) }

// Controllers returns the names of all controllers.
func Controllers() []string { return app.Controllers() }
