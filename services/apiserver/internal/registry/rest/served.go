package rest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/resource"
)

// Entry is one line in the list of all resources: a Served of whatever type, or what is served without a store.
type Entry interface {
	// AddToScheme registers defaults and field selectors.
	AddToScheme(*runtime.Scheme) error
	// Storages opens what the entry is served from, by path, for example "pods" and "pods/status".
	Storages(Options) (map[string]genericrest.Storage, error)
}

// Served is a Resource that is served from a store, with what only the API machinery can do for it.
type Served[O resource.Object] struct {
	resource.Resource[O]
	// Subresources make what is served beside the object, its /status, its /scale and its other Writes, by path, for
	// example "pods/eviction".
	Subresources map[string]func(*Storage) genericrest.Storage
	// Wrap puts what else a write does around the store of the few resources whose writes do more.
	Wrap func(*Storage) genericrest.Storage
	// Customize is the last step before the store is completed: hooks such as AfterDelete for the few resources that
	// need one.
	Customize func(*genericregistry.Store)
}

// Serve serves what the resource says of itself, and nothing else.
func Serve[O resource.Object](r resource.Resource[O]) Served[O] { return Served[O]{Resource: r} }

// ServeWrapped serves the resource with something around its store's own writes.
func ServeWrapped[O resource.Object](r resource.Resource[O], wrap func(*Storage) genericrest.Storage) Served[O] {
	return Served[O]{Resource: r, Wrap: wrap}
}

// Stateless is the Entry of resources that are never stored, such as reviews.
type Stateless map[string]genericrest.Storage

var (
	_ Entry = Served[resource.Object]{}
	_ Entry = Stateless{}
)

// Options is what every Entry gets.
type Options struct {
	// Scheme knows the type of each object.
	Scheme *runtime.Scheme
	// RESTOptions tells where and how a resource is stored.
	RESTOptions generic.RESTOptionsGetter
}

// AddToScheme registers nothing: such objects have neither defaults nor field selectors.
func (s Stateless) AddToScheme(*runtime.Scheme) error { return nil }

// Storages returns the resources themselves.
func (s Stateless) Storages(Options) (map[string]genericrest.Storage, error) { return s, nil }

func (r Served[O]) ttl() func(runtime.Object, uint64, bool) (uint64, error) {
	if r.TTL == nil {
		return nil
	}
	return func(obj runtime.Object, _ uint64, _ bool) (uint64, error) {
		return uint64(r.TTL(obj.(O)) / time.Second), nil
	}
}
