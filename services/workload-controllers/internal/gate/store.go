package gate

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StoreOf returns the store behind a cache's objects of one kind. It may not be filled yet.
func StoreOf(from cache.Cache, kind client.Object) (toolscache.Indexer, error) {
	informer, err := from.GetInformer(context.Background(), kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("getting the informer of %T: %w", kind, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the informer of %T is a %T, which has no store", kind, informer)
	}
	return shared.GetIndexer(), nil
}
