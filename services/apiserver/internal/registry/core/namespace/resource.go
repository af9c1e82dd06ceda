// Package namespace is the resource Namespace of the core group. Deleting one, which package deletion does, only marks
// it: it disappears when the last of its finalizers has been taken away through /finalize, after its contents are gone.
//
//keelson:decision
package namespace

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Namespace with its /status and /finalize.
var Resource = resource.Resource[*corev1.Namespace]{
	Name:          "namespaces",
	Singular:      "namespace",
	ShortNames:    []string{"ns"},
	ClusterScoped: true,
	New:           func() *corev1.Namespace { return &corev1.Namespace{} },
	NewList:       func() runtime.Object { return &corev1.NamespaceList{} },
	Default:       Default,
	Spec:          resource.PartOf(func(ns *corev1.Namespace) *corev1.NamespaceSpec { return &ns.Spec }),
	Status:        resource.PartOf(func(ns *corev1.Namespace) *corev1.NamespaceStatus { return &ns.Status }),
	NoGeneration:  true,
	Strategy: resource.Strategy[*corev1.Namespace]{
		Name:             apivalidation.NameIsDNSLabel,
		PrepareForCreate: prepareForCreate,
		PrepareForUpdate: func(ns, old *corev1.Namespace) { ns.Spec = old.Spec },
		Canonicalize:     Default,
		Validate:         Validate,
	},
	StatusStrategy: resource.Strategy[*corev1.Namespace]{ValidateUpdate: ValidateStatusUpdate},
	Writes:         map[string]resource.Strategy[*corev1.Namespace]{"namespaces/finalize": finalizeStrategy},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.Namespace](),
		resource.Column("Status", "string", "The status of the namespace",
			func(ns *corev1.Namespace) any { return string(ns.Status.Phase) }),
		resource.AgeColumn[*corev1.Namespace](),
	),
	Fields: []resource.Field[*corev1.Namespace]{
		{Label: "status.phase", Value: func(ns *corev1.Namespace) string { return string(ns.Status.Phase) }},
	},
	ReturnDeleted: true,
}
