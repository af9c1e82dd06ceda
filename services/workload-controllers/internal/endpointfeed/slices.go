package endpointfeed

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/wake"
)

// byService is the name of the index; its values are a namespace, the name of a Service in it and who keeps the
// slice.
const byService = "keelson.dev/service"

// Slices finds the EndpointSlices of Services that one controller keeps.
type Slices struct {
	store   toolscache.Indexer
	manager string
}

// SlicesOf returns the slices of a store whose label says that the manager keeps them.
func SlicesOf(store toolscache.Indexer, manager string) (Slices, error) {
	err := storeindex.Add(store, byService, func(slice *discoveryv1.EndpointSlice) []string {
		labels := slice.Labels
		return []string{key(slice.Namespace, labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy])}
	})
	return Slices{store: store, manager: manager}, err
}

// SlicesBy is SlicesOf the cache's slices, for a controller that is being set up.
func SlicesBy(s *controller.Setup, manager string) Slices {
	slices, err := SlicesOf(s.Store(&discoveryv1.EndpointSlice{}), manager)
	s.Check(err)
	return slices
}

// Of returns the slices of a Service. They are shared with the cache: read only.
func (s Slices) Of(namespace, service string) []*discoveryv1.EndpointSlice {
	return storeindex.Find[discoveryv1.EndpointSlice](s.store, byService, key(namespace, service, s.manager))
}

// OnSlice wakes up the Service of a slice that the manager keeps, or kept before it changed.
func (s Slices) OnSlice() handler.TypedFuncs[*discoveryv1.EndpointSlice, reconcile.Request] {
	return controller.Each(func(slice *discoveryv1.EndpointSlice, q wake.Queue) {
		name := slice.Labels[discoveryv1.LabelServiceName]
		if name != "" && slice.Labels[discoveryv1.LabelManagedBy] == s.manager {
			q.Add(wake.Request(slice.Namespace, name))
		}
	})
}

func key(namespace, service, manager string) string { return namespace + "/" + service + "/" + manager }
