package pods

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"keelson.dev/kit/controller"
)

// Name is the collector's.
const Name = "pods"

// period is the time between two sweeps.
const period = 20 * time.Second

// Register describes the collector. threshold is how many finished Pods may stay; 0 or less keeps them all. other is
// the collector that has a word in what becomes of a Pod.
func Register(threshold int, other Outlook) controller.Registration {
	return controller.Registration{
		Name: Name, Explains: "Pod",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) {
			c := &collector{client: s.Client, live: s.Live, log: s.Log, threshold: threshold, pods: newIndex()}
			s.Explain(c.explainer(other))
			return &sweeper{setup: s, collector: c}, nil
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

// follow keeps the index up to date from the service's one watch of Pods, and returns when it is complete.
func (s *sweeper) follow(ctx context.Context) (unfollow func(), err error) {
	informer, err := s.setup.Cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	put := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			s.collector.pods.put(pod)
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: put, UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				s.collector.pods.remove(pod.UID)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	// An informer that has stopped calls nobody any more.
	unfollow = func() { _ = informer.RemoveEventHandler(registration) }
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		unfollow()
		return nil, ctx.Err()
	}
	return unfollow, nil
}
