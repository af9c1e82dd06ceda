// Package inproc runs podgc inside another process.
package inproc

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/podgc/internal/app"
)

// Config is what podgc needs. Only REST must be set.
type Config = app.Config

// Start starts podgc which runs until ctx ends or the handle is stopped.
func Start(ctx context.Context, c Config) *daemon.Handle {
	return daemon.Go(ctx, func(ctx context.Context) error { return app.Run(ctx, c) })
}

// Rules are all that the collectors do at the apiserver.
func Rules() []rbacv1.PolicyRule { return app.Rules() }

// Collectors are the names of all collectors.
func Collectors() []string { return app.Collectors() }
