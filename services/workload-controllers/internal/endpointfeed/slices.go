package endpointfeed

import (
	"context"
	"fmt"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/wake"
)

// byService is the name of the index; its values are a namespace, the name of a Service in it and who keeps the slice.
const byService = "keelson.dev/service"

// adding keeps two controllers that share a cache from adding the index at once.
var adding sync.Mutex

// Slices finds the EndpointSlices of Services that one controller keeps.
type Slices struct {
	store   toolscache.Indexer
	manager string
}

// SlicesOf returns the slices of a store whose label says that the manager keeps them.
func SlicesOf(store toolscache.Indexer, manager string) (Slices, error) {
	adding.Lock()
	defer adding.Unlock()
	if _, ok := store.GetIndexers()[byService]; !ok {
		if err := store.AddIndexers(toolscache.Indexers{byService: services}); err != nil {
			return Slices{}, fmt.Errorf("indexing EndpointSlices by Service: %w", err)
		}
	}
	return Slices{store: store, manager: manager}, nil
}

// Of returns the slices of a Service. They are shared with the cache: read only.
func (s Slices) Of(namespace, service string) []*discoveryv1.EndpointSlice {
	// The only error is that the index does not exist; SlicesOf has added it.
	items, _ := s.store.ByIndex(byService, key(namespace, service, s.manager))
	all := make([]*discoveryv1.EndpointSlice, 0, len(items))
	for _, item := range items {
		if slice, ok := item.(*discoveryv1.EndpointSlice); ok {
			all = append(all, slice)
		}
	}
	return all
}

// OnSlice wakes up the Service of a slice that the manager keeps, or kept before it changed.
func (s Slices) OnSlice() handler.TypedFuncs[*discoveryv1.EndpointSlice, reconcile.Request] {
	wakeUp := func(slice *discoveryv1.EndpointSlice, q wake.Queue) {
		name := slice.Labels[discoveryv1.LabelServiceName]
		if name != "" && slice.Labels[discoveryv1.LabelManagedBy] == s.manager {
			q.Add(wake.Request(slice.Namespace, name))
		}
	}
	return handler.TypedFuncs[*discoveryv1.EndpointSlice, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*discoveryv1.EndpointSlice], q wake.Queue) {
			wakeUp(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*discoveryv1.EndpointSlice], q wake.Queue) {
			wakeUp(e.ObjectOld, q)
			wakeUp(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*discoveryv1.EndpointSlice], q wake.Queue) {
			wakeUp(e.Object, q)
		},
	}
}

func services(item any) ([]string, error) {
	slice, ok := item.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, fmt.Errorf("indexing a %T as an EndpointSlice", item)
	}
	service := slice.Labels[discoveryv1.LabelServiceName]
	return []string{key(slice.Namespace, service, slice.Labels[discoveryv1.LabelManagedBy])}, nil
}

func key(namespace, service, manager string) string { return namespace + "/" + service + "/" + manager }
