// Package configmap is the resource ConfigMap of the core group.
package configmap

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*corev1.ConfigMap]{
	Name:       "configmaps",
	Singular:   "configmap",
	ShortNames: []string{"cm"},
	New:        func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
	NewList:    func() runtime.Object { return &corev1.ConfigMapList{} },
	Strategy:   strategy,
	Columns:    columns,
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store.
func NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	s, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	return s.Map(), nil
}
