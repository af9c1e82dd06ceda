package pods

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"keelson.dev/kit/controller"
	"keelson.dev/services/podgc/internal/podfeed"
)

// Name is the collector's.
const Name = "pods"

// period is the time between two sweeps.
const period = 20 * time.Second

// Registration describes the collector. threshold is how many finished Pods may stay; 0 or less keeps them all. other
// is the collector that has a word in what becomes of a Pod.
func Registration(threshold int, feed *podfeed.Feed, other Outlook) controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{"Pod"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) {
			c := &collector{client: s.Client, live: s.Live, log: s.Log, threshold: threshold, pods: newIndex(),
				elsewhere: feed.Elsewhere}
			s.Explain(c.explainer(other))
			return &sweeper{setup: s, feed: feed, collector: c}, nil
		},
	}
}

// sweeper sweeps once per period.
type sweeper struct {
	setup     *controller.Setup
	feed      *podfeed.Feed
	collector *collector
}

// Start implements controller.Runnable.
func (s *sweeper) Start(ctx context.Context) error {
	if _, err := s.setup.Cache.GetInformer(ctx, &corev1.Node{}); err != nil {
		return err
	}
	unfollow, err := s.follow(ctx)
	if err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	defer unfollow()
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

// follow keeps the index up to date, and returns when it is complete.
func (s *sweeper) follow(ctx context.Context) (unfollow func(), err error) {
	synced, unfollow, err := s.feed.Follow(ctx, s.setup.Cache, func(last, now *corev1.Pod) {
		if now == nil {
			s.collector.pods.remove(last.UID)
			return
		}
		s.collector.pods.put(now)
	})
	if err != nil {
		return nil, err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced) {
		unfollow()
		return nil, ctx.Err()
	}
	return unfollow, nil
}
