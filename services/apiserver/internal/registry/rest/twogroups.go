package rest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/resource"
)

// ServeInTwoGroups serves the resource in its own group and, from the same store, in another one, where new objects and
// updates are written under other rules. Both entries are to be served.
func ServeInTwoGroups[O resource.Object](r resource.Resource[O], group string,
	rules resource.Strategy[O]) (own, other Entry) {
	s := &sharedStore[O]{Served: Serve(r)}
	return s, otherGroup[O]{s, group, rules}
}

// sharedStore is a resource with its one store.
type sharedStore[O resource.Object] struct {
	Served[O]
	opened *Storage
}

// Storages opens the store, or takes the one already open, and returns it as the resource of its own group.
func (s *sharedStore[O]) Storages(o Options) (map[string]genericrest.Storage, error) {
	if s.opened == nil {
		opened, err := s.Open(o)
		if err != nil {
			return nil, err
		}
		s.opened = opened
	}
	return s.Paths(s.opened), nil
}

// otherGroup is the resource in the other group.
type otherGroup[O resource.Object] struct {
	shared *sharedStore[O]
	group  string
	rules  resource.Strategy[O]
}

// AddToScheme registers nothing: the defaults are those of the resource's own group, the field selectors come with the
// conversion.
func (g otherGroup[O]) AddToScheme(*runtime.Scheme) error { return nil }

// Storages returns the store of the resource's own group as the resource of the other one.
func (g otherGroup[O]) Storages(o Options) (map[string]genericrest.Storage, error) {
	if _, err := g.shared.Storages(o); err != nil {
		return nil, err
	}
	view, store := *g.shared.opened, *g.shared.opened.Store
	rules := &strategy[O]{g.rules, view.scope}
	store.CreateStrategy, store.UpdateStrategy = rules, rules
	store.DefaultQualifiedResource = schema.GroupResource{Group: g.group, Resource: g.shared.Name}
	view.Store = &store
	return map[string]genericrest.Storage{g.shared.Name: &view}, nil
}
