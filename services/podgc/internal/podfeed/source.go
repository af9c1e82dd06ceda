package podfeed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/controller"
)

// Queue is what a collector works off.
type Queue = controller.Queue[reconcile.Request]

// Source wakes objects up when Pods change. It implements controller-runtime's SyncingSource.
type Source struct {
	Feed  *Feed
	Cache cache.Cache
	// Wake queues what a change concerns; it is a Follower with the queue. Who only reads the feed has none.
	Wake func(last, now *corev1.Pod, q Queue)

	synced toolscache.InformerSynced
}

// Start follows the Pods until ctx ends.
func (s *Source) Start(ctx context.Context, q Queue) error {
	follower := func(*corev1.Pod, *corev1.Pod) {}
	if s.Wake != nil {
		follower = func(last, now *corev1.Pod) { s.Wake(last, now, q) }
	}
	synced, stop, err := s.Feed.Follow(ctx, s.Cache, follower)
	if err != nil {
		return err
	}
	s.synced = synced
	context.AfterFunc(ctx, stop)
	return nil
}

// WaitForSync returns when all Pods have been looked at. controller-runtime calls it after Start.
func (s *Source) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), s.synced) {
		return fmt.Errorf("listing Pods: %w", ctx.Err())
	}
	return nil
}

// String says in logs and errors what is watched.
func (s *Source) String() string { return "Pods" }
