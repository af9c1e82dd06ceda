// Package secret is the resource Secret of the core group.
package secret

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*corev1.Secret]{
	Name:     "secrets",
	Singular: "secret",
	New:      func() *corev1.Secret { return &corev1.Secret{} },
	NewList:  func() runtime.Object { return &corev1.SecretList{} },
	Default:  Default,
	Strategy: rest.Strategy[*corev1.Secret]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	Columns:  columns,
	Fields:   []rest.Field[*corev1.Secret]{{Label: "type", Value: func(s *corev1.Secret) string { return string(s.Type) }}},
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store.
func NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	storage, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	return storage.Map(), nil
}
