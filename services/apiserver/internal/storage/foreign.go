package storage

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// Of is the store for resources of another scheme, which converts what is stored in the version to a type of its own.
func (s *Store) Of(codecs serializer.CodecFactory, version schema.GroupVersion) generic.RESTOptionsGetter {
	return converted{s, codecs, version}
}

type converted struct {
	store   *Store
	codecs  serializer.CodecFactory
	version schema.GroupVersion
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (c converted) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config, err := configOf(resource, c.codecs, c.version)
	if err != nil {
		return generic.RESTOptions{}, fmt.Errorf("finding the storage form of %s: %w", resource, err)
	}
	return c.store.options(resource, config), nil
}

// Untyped is the store for resources whose objects have no type in this program. They are kept as JSON.
func (s *Store) Untyped() generic.RESTOptionsGetter { return untyped{s} }

type untyped struct{ store *Store }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (u untyped) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config := storagebackend.NewDefaultConfig(prefix, unstructured.UnstructuredJSONScheme)
	return u.store.options(resource, config.ForResource(resource)), nil
}
