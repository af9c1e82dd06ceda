// Package inproc runs the workload controllers inside another process.
package inproc

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/workload-controllers/internal/app"
)

// Config is what the controllers need. Only REST must be set.
type Config = app.Config

// Start starts the controllers, which run until ctx ends or the handle is stopped.
func Start(ctx context.Context, c Config) *daemon.Handle {
	return daemon.Go(ctx, func(ctx context.Context) error { return app.Run(ctx, c) })
}

// Rules are all that the named controllers do at the apiserver; without names, all of them.
func Rules(names ...string) []rbacv1.PolicyRule { return app.Rules(names...) }

// Controllers are the names of all controllers.
func Controllers() []string { return app.Controllers() }
