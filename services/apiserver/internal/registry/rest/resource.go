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

	// New returns an empty object, NewList an empty list of them.
	New     func() O
	NewList func() runtime.Object

	// Default fills in the fields that a client left out. It runs on every
	// decoded object, also on objects read from the store, so it must be
	// idempotent. Nil: nothing is defaulted.
	Default func(O)
	// Strategy rules writes of the object, Status those of its /status;
	// without Status there is no /status.
	Strategy Strategy[O]
	Status   *Strategy[O]

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

// Options is what every resource's NewStorage gets.
type Options struct {
	// Scheme knows the type of each object.
	Scheme *runtime.Scheme
	// RESTOptions tells where and how a resource is stored.
	RESTOptions generic.RESTOptionsGetter
}

// Storage is a resource's store and, if it has a status, the store of /status.
type Storage struct {
	*genericregistry.Store
	// Status is nil for a resource without a status.
	Status *Subresource

	name                   string
	shortNames, categories []string
}

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

// NewStorage opens the resource's store.
func (r Resource[O]) NewStorage(o Options) (*Storage, error) {
	main := strategy[O]{ObjectTyper: o.Scheme, Strategy: r.Strategy}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return r.New() },
		NewListFunc:               r.NewList,
		PredicateFunc:             r.predicate,
		DefaultQualifiedResource:  r.groupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: r.Group, Resource: r.Singular},
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main.forDelete(),
		ResetFieldsStrategy:       main,
		TableConvertor:            tableConvertor[O]{r.Columns.withDefaults()},
		ReturnDeletedObject:       r.ReturnDeleted,
		TTLFunc:                   r.ttl(),
	}
	if r.Customize != nil {
		r.Customize(store)
	}
	options := &generic.StoreOptions{RESTOptions: o.RESTOptions, AttrFunc: r.attributes, TriggerFunc: r.triggers(), Indexers: r.indexers()}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("opening the store of %s: %w", r.groupResource(), err)
	}
	s := &Storage{Store: store, name: r.Name, shortNames: r.ShortNames, categories: r.Categories}
	if r.Status != nil {
		status := *r.Status
		status.ClusterScoped = r.Strategy.ClusterScoped
		s.Status = s.Subresource(NewUpdateStrategy(o, status))
	}
	return s, nil
}

// Map is the storages by path: the resource and, if it has one, its status.
func (s *Storage) Map() map[string]genericrest.Storage {
	m := map[string]genericrest.Storage{s.name: s}
	if s.Status != nil {
		m[s.name+"/status"] = s.Status
	}
	return m
}

// ShortNames implements the API machinery's ShortNamesProvider.
func (s *Storage) ShortNames() []string { return s.shortNames }

// Categories implements the API machinery's CategoriesProvider.
func (s *Storage) Categories() []string { return s.categories }

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
