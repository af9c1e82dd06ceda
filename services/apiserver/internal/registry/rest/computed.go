package rest

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/resource"
)

// Computed is a resource that is never stored and only read: its objects are made on request. There is nothing to
// watch, and a list is always whole.
type Computed[O resource.Object] struct {
	// Group and Name are the group and the plural, for example "metrics.k8s.io" and "pods".
	Group, Name string
	// Singular is what clients may call one, for example "podmetrics".
	Singular string
	// ShortNames are what kubectl also accepts.
	ShortNames []string
	// ClusterScoped is true for objects without a namespace.
	ClusterScoped bool
	New           func() O
	NewList       func() runtime.Object
	// Get makes the object of that name, List those that are selected.
	Get     func(ctx context.Context, namespace, name string) (O, error)
	List    func(ctx context.Context, namespace string, selected Selection) (runtime.Object, error)
	Columns resource.Columns[O]
}

// Selection is which objects a list is to have, by their labels, name and namespace: the API machinery refuses
// selectors of other fields.
type Selection struct {
	Labels labels.Selector
	fields fields.Selector
}

// Matches reports whether the object is selected.
func (s Selection) Matches(obj metav1.Object) bool {
	return s.Labels.Matches(labels.Set(obj.GetLabels())) && s.fields.Matches(fields.Set{
		"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

var _ Entry = Computed[resource.Object]{}

// AddToScheme registers nothing: such objects have neither defaults nor field selectors of their own.
func (c Computed[O]) AddToScheme(*runtime.Scheme) error { return nil }

// Storages is what serves the resource.
func (c Computed[O]) Storages(Options) (map[string]genericrest.Storage, error) {
	return map[string]genericrest.Storage{c.Name: &computed[O]{newTableConvertor(c.Columns), c}}, nil
}

// Describe returns the resource without its type. It has no rules for writes.
func (c Computed[O]) Describe(*runtime.Scheme) Description {
	return Description{
		GroupResource: schema.GroupResource{Group: c.Group, Resource: c.Name},
		Singular:      c.Singular, ClusterScoped: c.ClusterScoped,
		New:   func() runtime.Object { return c.New() },
		Table: newTableConvertor(c.Columns),
	}
}

type computed[O resource.Object] struct {
	tableConvertor[O]
	resource Computed[O]
}

var (
	_ genericrest.Getter               = &computed[resource.Object]{}
	_ genericrest.Lister               = &computed[resource.Object]{}
	_ genericrest.Scoper               = &computed[resource.Object]{}
	_ genericrest.SingularNameProvider = &computed[resource.Object]{}
	_ genericrest.ShortNamesProvider   = &computed[resource.Object]{}
)

// New returns an empty object.
func (c *computed[O]) New() runtime.Object { return c.resource.New() }

// NewList returns an empty list.
func (c *computed[O]) NewList() runtime.Object { return c.resource.NewList() }

// Destroy has nothing to close.
func (c *computed[O]) Destroy() {}

// NamespaceScoped reports whether the objects lie within a namespace.
func (c *computed[O]) NamespaceScoped() bool { return !c.resource.ClusterScoped }

// GetSingularName is the resource's name in the singular.
func (c *computed[O]) GetSingularName() string { return c.resource.Singular }

// ShortNames are the resource's shorter names.
func (c *computed[O]) ShortNames() []string { return c.resource.ShortNames }

// Get makes one object.
func (c *computed[O]) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return c.resource.Get(ctx, genericapirequest.NamespaceValue(ctx), name)
}

// List makes the objects that the options select.
func (c *computed[O]) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	selected := Selection{Labels: labels.Everything(), fields: fields.Everything()}
	if options != nil && options.LabelSelector != nil {
		selected.Labels = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		selected.fields = options.FieldSelector
	}
	return c.resource.List(ctx, genericapirequest.NamespaceValue(ctx), selected)
}
