// Package endpoints is the resource Endpoints of the core group: the addresses behind a Service.
package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*corev1.Endpoints]{
	Name:       "endpoints",
	Singular:   "endpoints",
	ShortNames: []string{"ep"},
	New:        func() *corev1.Endpoints { return &corev1.Endpoints{} },
	NewList:    func() runtime.Object { return &corev1.EndpointsList{} },
	Default:    Default,
	Strategy: rest.Strategy[*corev1.Endpoints]{
		Validate:       Validate,
		ValidateUpdate: func(e, _ *corev1.Endpoints) field.ErrorList { return Validate(e) },
		CreateOnUpdate: true,
	},
	Columns: columns,
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

// Default fills in the protocol of ports without one.
func Default(e *corev1.Endpoints) {
	for i := range e.Subsets {
		ports := e.Subsets[i].Ports
		for j := range ports {
			if ports[j].Protocol == "" {
				ports[j].Protocol = corev1.ProtocolTCP
			}
		}
	}
}
