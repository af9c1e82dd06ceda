package podfeed

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podset"
)

// batchDelay is how long a change of a Pod waits at least for others of the same owner, so that a burst of them costs
// one pass.
const batchDelay = 10 * time.Millisecond

// Requests names the objects that a Pod's change concerns.
type Requests func(pod *corev1.Pod, change podset.Change) []reconcile.Request

// Source wakes objects up when Pods change. It implements controller-runtime's SyncingSource: the controller starts
// when the index is complete.
type Source struct {
	Feed     *Feed
	Cache    cache.Cache
	Requests Requests
	// Delay is how long a Pod's change may wait for others, where a pass costs much; nil means as little as can be.
	Delay func(change podset.Change) time.Duration
}

// Start subscribes the queue until ctx ends.
func (s *Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	cancel := s.Feed.Subscribe(func(pod *corev1.Pod, change podset.Change) {
		delay := batchDelay
		if s.Delay != nil {
			delay = max(delay, s.Delay(change))
		}
		for _, request := range s.Requests(pod, change) {
			queue.AddAfter(request, delay)
		}
	})
	context.AfterFunc(ctx, cancel)
	return nil
}

// WaitForSync returns when the index holds all Pods.
func (s *Source) WaitForSync(ctx context.Context) error { return s.Feed.Connect(ctx, s.Cache) }

// String says in logs and errors what is watched.
func (s *Source) String() string { return "Pods" }
