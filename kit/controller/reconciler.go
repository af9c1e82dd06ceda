package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A failing object is tried again after retryFirst, doubled up to retryMax. There is no bound over all objects: flow
// control is the server's.
const (
	retryFirst = 5 * time.Millisecond
	retryMax   = 60 * time.Second
)

// newReconciler returns a controller-runtime controller that watches nothing yet; see Build.
func newReconciler[request comparable](s *Setup, concurrent int,
	r reconcile.TypedReconciler[request]) (ctrl.TypedController[request], error) {
	yes, log := true, newLogger(s.Log)
	c, err := ctrl.NewTypedUnmanaged(s.Name, ctrl.TypedOptions[request]{
		// One process may win a Lease more than once.
		SkipNameValidation:      &yes,
		RecoverPanic:            &yes,
		MaxConcurrentReconciles: concurrent,
		Logger:                  log,
		CacheSyncTimeout:        waitsForKinds,
		Reconciler:              reporting[request]{next: r, setup: s},
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[request](retryFirst, retryMax),
		NewQueue: func(name string,
			limiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
			queue := priorityqueue.New(name, func(o *priorityqueue.Opts[request]) {
				o.Log, o.RateLimiter = log, limiter
			})
			s.state.AddQueue(name, func() (int, time.Duration) { return queue.Len(), 0 })
			return queue
		},
	})
	if err != nil {
		return nil, fmt.Errorf("building controller %s: %w", s.Name, err)
	}
	return c, nil
}

// reporting reports errors to introspection.
type reporting[request comparable] struct {
	next  reconcile.TypedReconciler[request]
	setup *Setup
}

// Reconcile implements reconcile.TypedReconciler.
func (r reporting[request]) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	result, err := r.next.Reconcile(ctx, req)
	if err != nil && ctx.Err() == nil {
		r.setup.state.Failed(r.setup.Name, err)
	}
	return result, err
}
