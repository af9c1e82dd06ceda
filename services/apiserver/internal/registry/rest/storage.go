package rest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
)

// Storage is a resource's open store and, if it has a status, the store of /status.
type Storage struct {
	*genericregistry.Store
	// Status is nil for a resource without a status.
	Status *Subresource

	scope                  scope
	deletes                deleteRules
	shortNames, categories []string
}

// Storages opens the resource's store and returns what is served from it: the object, its /status, its /scale, and what
// else the resource says.
func (r Served[O]) Storages(o Options) (map[string]genericrest.Storage, error) {
	s, err := r.Open(o)
	if err != nil {
		return nil, err
	}
	return r.Paths(s), nil
}

// Paths are what is served from the open store s.
func (r Served[O]) Paths(s *Storage) map[string]genericrest.Storage {
	paths := map[string]genericrest.Storage{r.Name: s}
	if r.Wrap != nil {
		paths[r.Name] = r.Wrap(s)
	}
	if s.Status != nil {
		paths[r.Name+"/status"] = s.Status
	}
	if r.Scale != nil {
		paths[r.Name+"/scale"] = newScale(s, *r.Scale)
	}
	for path, rules := range r.Writes {
		subresource := s.writes(&strategy[O]{rules, s.scope})
		paths[path] = subresource
		if rules.PutOnly {
			paths[path] = putOnly{subresource, subresource, subresource}
		}
	}
	for path, newStorage := range r.Subresources {
		paths[path] = newStorage(s)
	}
	return paths
}

// Open opens the resource's store.
func (r Served[O]) Open(o Options) (*Storage, error) {
	scope := r.scope(o.Scheme)
	main := &strategy[O]{r.ObjectWrites(), scope}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return r.New() },
		NewListFunc:               r.NewList,
		PredicateFunc:             r.predicate,
		DefaultQualifiedResource:  r.GroupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: r.Group, Resource: r.Singular},
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main.forDelete(),
		ResetFieldsStrategy:       main,
		TableConvertor:            newTableConvertor(r.Columns),
		ReturnDeletedObject:       r.ReturnDeleted,
		TTLFunc:                   r.ttl(),
	}
	if r.Customize != nil {
		r.Customize(store)
	}
	options := &generic.StoreOptions{
		RESTOptions: o.RESTOptions, AttrFunc: r.Attributes, TriggerFunc: r.triggers(), Indexers: r.indexers(),
	}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("opening the store of %s: %w", r.GroupResource(), err)
	}
	s := &Storage{Store: store, scope: scope, deletes: deletesOf(main.Strategy), shortNames: r.ShortNames,
		categories: r.Categories}
	if r.Status != nil {
		s.Status = s.writes(&strategy[O]{r.StatusWrites(), scope})
	}
	return s, nil
}

// ShortNames implements the API machinery's ShortNamesProvider.
func (s *Storage) ShortNames() []string { return s.shortNames }

// Categories implements the API machinery's CategoriesProvider.
func (s *Storage) Categories() []string { return s.categories }

func (r Served[O]) scope(scheme *runtime.Scheme) scope {
	return scope{scheme, r.ClusterScoped, scheme.PrioritizedVersionsForGroup(r.Group)}
}
