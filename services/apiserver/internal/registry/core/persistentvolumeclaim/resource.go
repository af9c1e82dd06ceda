// Package persistentvolumeclaim is the resource PersistentVolumeClaim of the core group: storage that a user asks for.
//
//keelson:decision
package persistentvolumeclaim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the PersistentVolumeClaim with its /status.
var Resource = resource.Resource[*corev1.PersistentVolumeClaim]{
	Name:       "persistentvolumeclaims",
	Singular:   "persistentvolumeclaim",
	ShortNames: []string{"pvc"},
	New:        func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} },
	NewList:    func() runtime.Object { return &corev1.PersistentVolumeClaimList{} },
	Default:    Default,
	Spec: resource.PartOf(func(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimSpec {
		return &c.Spec
	}),
	Status: resource.PartOf(func(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimStatus {
		return &c.Status
	}),
	// The field's claims do not count their generation.
	NoGeneration: true,
	Strategy: resource.Strategy[*corev1.PersistentVolumeClaim]{
		PrepareForCreate: func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimPending
			completeDataSource(&c.Spec)
		},
		PrepareForUpdate: func(c, _ *corev1.PersistentVolumeClaim) { completeDataSource(&c.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*corev1.PersistentVolumeClaim]{
		// The health of volumes is alpha and off.
		PrepareForUpdate: func(c, _ *corev1.PersistentVolumeClaim) { c.Status.HealthStatus = nil },
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Columns: columns,
}

// Default fills in the fields that c leaves out.
func Default(c *corev1.PersistentVolumeClaim) {
	podspec.SetClaimDefaults(&c.Spec)
	defaults.Set(&c.Status.Phase, corev1.ClaimPending)
}

// completeDataSource makes dataSource and dataSourceRef say the same where a client set only one of them. A reference
// into another namespace has no counterpart.
func completeDataSource(spec *corev1.PersistentVolumeClaimSpec) {
	source, ref := spec.DataSource, spec.DataSourceRef
	switch {
	case source != nil && ref == nil:
		spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind,
			Name: source.Name}
	case source == nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == ""):
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}
