// Package typedfields gives objects the types by which the library keeps track of who manages their fields.
package typedfields

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Kinds are the kinds of a server's requests.
type Kinds struct {
	// Stored are those of objects that are stored, Asked those of objects that only ask for something, as a Binding and
	// a TokenReview do.
	Stored, Asked []schema.GroupVersionKind
}

// converter makes of an object what its managed fields are computed from.
type converter struct {
	// TypeConverter is the library's. It checks each object against the schema first, which takes half of the time of
	// all work for managed fields.
	managedfields.TypeConverter
	types map[schema.GroupVersionKind]typed.ParseableType
	// nothing stands for every object of a kind that is not stored: it has no fields that anybody could manage.
	nothing map[schema.GroupVersionKind]*typed.TypedValue
}

// New returns the library's converter without the work that changes no result. An object of a Go type has no field that
// the type's schema does not have, so it is not checked against the schema; what a client applies is. No client manages
// a field of an object that is not stored.
func New(scheme *runtime.Scheme, config *common.OpenAPIV3Config, kinds Kinds) (managedfields.TypeConverter, error) {
	samples, names, err := samplesOf(scheme, slices.Concat(kinds.Stored, kinds.Asked))
	if err != nil {
		return nil, err
	}
	definitions, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		return nil, fmt.Errorf("building the definitions of all kinds: %w", err)
	}
	library, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		return nil, fmt.Errorf("making schemas of the definitions of all kinds: %w", err)
	}
	c := &converter{TypeConverter: library, types: map[schema.GroupVersionKind]typed.ParseableType{},
		nothing: map[schema.GroupVersionKind]*typed.TypedValue{}}
	for kind, sample := range samples {
		of, err := library.ObjectToTyped(sample, typed.AllowDuplicates)
		if err != nil {
			return nil, fmt.Errorf("reading the schema of %s: %w", kind, err)
		}
		c.types[kind] = typed.ParseableType{Schema: of.Schema(), TypeRef: of.TypeRef()}
		if slices.Contains(kinds.Asked, kind) {
			c.nothing[kind] = of
		}
	}
	return c, nil
}

// samplesOf are an empty object of each kind, and the names of their definitions.
func samplesOf(
	scheme *runtime.Scheme, kinds []schema.GroupVersionKind,
) (samples map[schema.GroupVersionKind]runtime.Object, names []string, err error) {
	samples = map[schema.GroupVersionKind]runtime.Object{}
	for _, kind := range kinds {
		sample, err := scheme.New(kind)
		if err != nil {
			return nil, nil, fmt.Errorf("making a %s: %w", kind, err)
		}
		names = append(names, openapiutil.GetCanonicalTypeName(sample))
		sample.GetObjectKind().SetGroupVersionKind(kind)
		samples[kind] = sample
	}
	return samples, names, nil
}

// ObjectToTyped implements TypeConverter.
func (c *converter) ObjectToTyped(
	object runtime.Object, options ...typed.ValidationOptions,
) (*typed.TypedValue, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	of, known := c.types[kind]
	_, untyped := object.(runtime.Unstructured)
	// Only of an object that is stored or about to be are duplicates allowed.
	if !known || untyped || !slices.Contains(options, typed.AllowDuplicates) {
		return c.TypeConverter.ObjectToTyped(object, options...)
	}
	if nothing := c.nothing[kind]; nothing != nil {
		return nothing, nil
	}
	fields, err := value.NewValueReflect(object)
	if err != nil {
		return nil, fmt.Errorf("reading the fields of a %s: %w", kind, err)
	}
	//nolint:staticcheck // the library advises to check, which is what takes the time
	return typed.AsTypedUnvalidated(fields, of.Schema, of.TypeRef), nil
}
