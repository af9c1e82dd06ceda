package controller

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Queue is what a controller works off.
type Queue[request comparable] = workqueue.TypedRateLimitingInterface[request]

// Objects watches the objects of a kind: one that came or changed is woken up itself, where the predicates hold.
func Objects[O client.Object](from cache.Cache, kind O, wanted ...predicate.TypedPredicate[O]) source.SyncingSource {
	return source.Kind(from, kind, &handler.TypedEnqueueRequestForObject[O]{}, wanted...)
}

// Each calls wake with each object that came, went or changed; with the last as it was, and then as it is.
func Each[O client.Object, request comparable](wake func(O, Queue[request])) handler.TypedFuncs[O, request] {
	return handler.TypedFuncs[O, request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[O], q Queue[request]) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[O], q Queue[request]) {
			wake(e.ObjectOld, q)
			wake(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[O], q Queue[request]) { wake(e.Object, q) },
	}
}

// Follow calls set with each object that is new or changed, and gone with each that is no longer there. Objects are
// distinguished by their UIDs: one that was recreated under its name while the watch was interrupted is another.
func Follow[O client.Object, request comparable](set, gone func(O, Queue[request])) handler.TypedFuncs[O, request] {
	return handler.TypedFuncs[O, request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[O], q Queue[request]) { set(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[O], q Queue[request]) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				gone(e.ObjectOld, q)
			}
			set(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[O], q Queue[request]) { gone(e.Object, q) },
	}
}

// Store returns the store behind the cache's objects of a kind. It may not be filled yet. Where there is none, Check
// is told of it, and the store that is returned is empty.
func (s *Setup) Store(kind client.Object) toolscache.Indexer {
	informer, err := Informer(context.Background(), s.Cache, kind, cache.BlockUntilSynced(false))
	if err != nil {
		s.Check(err)
		return toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	}
	return informer.GetIndexer()
}

// Informer returns the informer of a cache's objects of a kind.
func Informer(ctx context.Context, from cache.Cache, kind client.Object,
	options ...cache.InformerGetOption) (toolscache.SharedIndexInformer, error) {
	informer, err := from.GetInformer(ctx, kind, options...)
	if err != nil {
		return nil, fmt.Errorf("getting the informer of %T: %w", kind, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the informer of %T is a %T, which has no store", kind, informer)
	}
	return shared, nil
}
