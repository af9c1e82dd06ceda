// Package endpoints is the resource Endpoints of the core group: the addresses behind a Service.
//
//keelson:decision
package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Endpoints.
var Resource = resource.Resource[*corev1.Endpoints]{
	Name:       "endpoints",
	Singular:   "endpoints",
	ShortNames: []string{"ep"},
	New:        func() *corev1.Endpoints { return &corev1.Endpoints{} },
	NewList:    func() runtime.Object { return &corev1.EndpointsList{} },
	Default:    Default,
	Strategy:   resource.Strategy[*corev1.Endpoints]{Validate: Validate, CreateOnUpdate: true},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.Endpoints](),
		resource.Column("Endpoints", "string", corev1.Endpoints{}.SwaggerDoc()["subsets"],
			func(e *corev1.Endpoints) any { return summary(e.Subsets) }),
		resource.AgeColumn[*corev1.Endpoints](),
	),
}

// Default fills in the protocol of ports without one.
func Default(e *corev1.Endpoints) {
	for i := range e.Subsets {
		ports := e.Subsets[i].Ports
		for j := range ports {
			defaults.Set(&ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}
