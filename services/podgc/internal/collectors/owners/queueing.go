package owners

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// queueing is the watcher as a source that also lets a decision put objects on the queue.
type queueing struct {
	*watcher
	queue queue
}

// Start implements source.TypedSource. controller-runtime starts all sources before the first reconcile.
func (s *queueing) Start(ctx context.Context, q queue) error {
	s.queue = q
	return s.watcher.Start(ctx, q)
}

func (s *queueing) add(uid types.UID) { s.queue.Add(uid) }
