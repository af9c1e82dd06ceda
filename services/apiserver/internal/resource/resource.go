package resource

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// Register registers the defaults of what else comes with the kind: an older version, what a subresource takes.
	Register func(*runtime.Scheme)

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
	// Writes are the rules of the subresources that write the object besides, by path, for example "pods/resize".
	Writes map[string]Strategy[O]
	// Scale says where /scale finds the replicas; nil: there is no /scale.
	Scale *Replicated[O]

	// Columns are what kubectl prints.
	Columns Columns[O]
	// Fields are the field selectors that the resource knows, besides
	// metadata.name and metadata.namespace.
	Fields []Field[O]
	// TTL is how long a written object lives; nil or zero: until deleted.
	TTL func(O) time.Duration
	// ReturnDeleted makes a delete answer with the deleted object in place of a Status.
	ReturnDeleted bool
}

// GroupResource is the group and the plural.
func (r Resource[O]) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

// AddToScheme registers the resource's defaults and field selectors.
func (r Resource[O]) AddToScheme(scheme *runtime.Scheme) error {
	if r.Default != nil {
		scheme.AddTypeDefaultingFunc(r.New(), func(obj any) { r.Default(obj.(O)) })
	}
	if r.Register != nil {
		r.Register(scheme)
	}
	if len(r.Fields) == 0 {
		return nil
	}
	kinds, _, err := scheme.ObjectKinds(r.New())
	if err != nil {
		return fmt.Errorf("registering the field selectors of %s: %w", r.GroupResource(), err)
	}
	for _, kind := range kinds {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		if err := scheme.AddFieldLabelConversionFunc(kind, r.convertFieldLabel); err != nil {
			return fmt.Errorf("registering the field selectors of %s: %w", r.GroupResource(), err)
		}
	}
	return nil
}
