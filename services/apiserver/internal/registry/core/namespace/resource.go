// Package namespace is the resource Namespace of the core group. Deleting one only marks it: it disappears when the
// last of its finalizers has been taken away through /finalize, after its contents are gone.
package namespace

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is the Namespace with its /status and /finalize.
var Resource = rest.Resource[*corev1.Namespace]{
	Name:          "namespaces",
	Singular:      "namespace",
	ShortNames:    []string{"ns"},
	ClusterScoped: true,
	New:           func() *corev1.Namespace { return &corev1.Namespace{} },
	NewList:       func() runtime.Object { return &corev1.NamespaceList{} },
	Default:       Default,
	Spec:          rest.PartOf(func(ns *corev1.Namespace) *corev1.NamespaceSpec { return &ns.Spec }),
	Status:        rest.PartOf(func(ns *corev1.Namespace) *corev1.NamespaceStatus { return &ns.Status }),
	NoGeneration:  true,
	Strategy: rest.Strategy[*corev1.Namespace]{
		Name:             apivalidation.NameIsDNSLabel,
		PrepareForCreate: prepareForCreate,
		PrepareForUpdate: func(ns, old *corev1.Namespace) { ns.Spec = old.Spec },
		Canonicalize:     Default,
		Validate:         Validate,
	},
	StatusStrategy: rest.Strategy[*corev1.Namespace]{ValidateUpdate: ValidateStatusUpdate},
	Subresources: map[string]func(*rest.Storage) genericrest.Storage{
		"namespaces/finalize": rest.Writes(finalizeStrategy),
	},
	Wrap: func(s *rest.Storage) genericrest.Storage { return newStorage(s) },
	Columns: rest.NewColumns(
		rest.NameColumn[*corev1.Namespace](),
		rest.Column("Status", "string", "The status of the namespace",
			func(ns *corev1.Namespace) any { return string(ns.Status.Phase) }),
		rest.AgeColumn[*corev1.Namespace](),
	),
	Fields: []rest.Field[*corev1.Namespace]{
		{Label: "status.phase", Value: func(ns *corev1.Namespace) string { return string(ns.Status.Phase) }},
	},
	ReturnDeleted: true,
	Customize: func(store *genericregistry.Store) {
		store.ShouldDeleteDuringUpdate = shouldDeleteDuringUpdate
	},
}
