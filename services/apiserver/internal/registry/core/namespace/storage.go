// Package namespace is the resource Namespace of the core group. Deleting one only marks it: it disappears when the last
// of its finalizers has been taken away through /finalize, after its contents are gone.
package namespace

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*corev1.Namespace]{
	Name:       "namespaces",
	Singular:   "namespace",
	ShortNames: []string{"ns"},
	New:        func() *corev1.Namespace { return &corev1.Namespace{} },
	NewList:    func() runtime.Object { return &corev1.NamespaceList{} },
	Default:    Default,
	Strategy:   strategy,
	Status:     &statusStrategy,
	Columns:    columns,
	Fields: []rest.Field[*corev1.Namespace]{
		{Label: "status.phase", Value: func(ns *corev1.Namespace) string { return string(ns.Status.Phase) }},
	},
	ReturnDeleted: true,
	Customize: func(store *genericregistry.Store) {
		store.ShouldDeleteDuringUpdate = shouldDeleteDuringUpdate
	},
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store and returns the Namespace, its /status and its /finalize.
func NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	s, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	return map[string]genericrest.Storage{
		"namespaces":          newStorage(s),
		"namespaces/status":   s.Status,
		"namespaces/finalize": s.Subresource(rest.NewUpdateStrategy(o, finalizeStrategy)),
	}, nil
}
