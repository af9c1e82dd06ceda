package podgc

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/controller"
)

// Name is the collector's.
const Name = "podgc"

// period is the time between two sweeps.
const period = 20 * time.Second

// Register describes the collector. threshold is how many finished Pods may stay; 0 or less keeps them all.
func Register(threshold int) controller.Registration {
	return controller.Registration{
		Name: Name,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) {
			return &sweeper{setup: s, collector: &collector{client: s.Client, live: s.Live, log: s.Log, threshold: threshold}}, nil
		},
	}
}

// sweeper sweeps once per period.
type sweeper struct {
	setup     *controller.Setup
	collector *collector
}

// Start implements controller.Runnable.
func (s *sweeper) Start(ctx context.Context) error {
	for _, object := range []client.Object{&corev1.Pod{}, &corev1.Node{}} {
		if _, err := s.setup.Cache.GetInformer(ctx, object); err != nil {
			return err
		}
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if err := s.collector.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.setup.Failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
