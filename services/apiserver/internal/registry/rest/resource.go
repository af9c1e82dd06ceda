package rest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
)

// Object is an API object: a pointer to a type of k8s.io/api.
type Object interface {
	runtime.Object
	metav1.Object
}

// Resource describes one API resource. Everything in it is data or a pure
// function; the object type O is a pointer, for example *corev1.ConfigMap.
type Resource[O Object] struct {
	// Group and Name are the group and the plural, for example "apps" and "deployments".
	Group, Name string
	// Singular is the name in the singular, for example "deployment".
	Singular string
	// ShortNames and Categories are what kubectl also accepts, for example "deploy" and "all".
	ShortNames, Categories []string
	// ClusterScoped is true for objects without a namespace.
	ClusterScoped bool

	// New returns an empty object, NewList an empty list of them.
	New     func() O
	NewList func() runtime.Object

	// Default fills in the fields that a client left out. It runs on every
	// decoded object, also on objects read from the store, so it must be
	// idempotent. Nil: nothing is defaulted.
	Default func(O)

	// Spec and Status are the parts that are written apart; nil: the kind has no such part. metadata.generation
	// counts the changes of the Spec. A Status has its /status, and no other write touches it.
	Spec, Status *Part[O]
	// NoGeneration is for the kinds whose metadata.generation does not count.
	NoGeneration bool
	// StatusOnCreate is for the kinds whose new objects bring their status.
	StatusOnCreate bool
	// Strategy has the kind's own rules for writes of the object, StatusStrategy those of /status. They stand beside
	// what follows from Spec and Status: what they prepare comes after the other part was taken from the old object
	// and before changes of the spec are counted.
	Strategy, StatusStrategy Strategy[O]

	// Scale says where /scale finds the replicas; nil: there is no /scale.
	Scale *Replicated[O]
	// Subresources make what is served beside the object, its /status and its /scale, by path, for example
	// "pods/eviction".
	Subresources map[string]func(*Storage) genericrest.Storage
	// Wrap puts what else a write does around the store of the few resources whose writes do more.
	Wrap func(*Storage) genericrest.Storage

	// Columns are what kubectl prints.
	Columns Columns[O]
	// Fields are the field selectors that the resource knows, besides
	// metadata.name and metadata.namespace.
	Fields []Field[O]
	// TTL is how long a written object lives; nil or zero: until deleted.
	TTL func(O) time.Duration
	// ReturnDeleted makes a delete answer with the deleted object in place of a Status.
	ReturnDeleted bool
	// Customize is the last step before the store is completed: hooks such as
	// AfterDelete or BeginCreate for the few resources that need one.
	Customize func(*genericregistry.Store)
}

// Entry is one line in the list of all resources: a Resource of whatever type, or what is served without a store.
type Entry interface {
	// AddToScheme registers defaults and field selectors.
	AddToScheme(*runtime.Scheme) error
	// Storages opens what the entry is served from, by path, for example "pods" and "pods/status".
	Storages(Options) (map[string]genericrest.Storage, error)
}

// Stateless is the Entry of resources that are never stored, such as reviews.
type Stateless map[string]genericrest.Storage

var (
	_ Entry = Resource[Object]{}
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

// AddToScheme registers the resource's defaults and field selectors.
func (r Resource[O]) AddToScheme(scheme *runtime.Scheme) error {
	if r.Default != nil {
		scheme.AddTypeDefaultingFunc(r.New(), func(obj any) { r.Default(obj.(O)) })
	}
	if len(r.Fields) == 0 {
		return nil
	}
	kinds, _, err := scheme.ObjectKinds(r.New())
	if err != nil {
		return fmt.Errorf("registering the field selectors of %s: %w", r.groupResource(), err)
	}
	for _, kind := range kinds {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		if err := scheme.AddFieldLabelConversionFunc(kind, r.convertFieldLabel); err != nil {
			return fmt.Errorf("registering the field selectors of %s: %w", r.groupResource(), err)
		}
	}
	return nil
}

func (r Resource[O]) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

func (r Resource[O]) ttl() func(runtime.Object, uint64, bool) (uint64, error) {
	if r.TTL == nil {
		return nil
	}
	return func(obj runtime.Object, _ uint64, _ bool) (uint64, error) {
		return uint64(r.TTL(obj.(O)) / time.Second), nil
	}
}
