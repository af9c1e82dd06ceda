// Package statefulset is the API resource statefulsets of group apps: Pods of one template, each with a name and
// storage that outlive it.
//
//keelson:decision
package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the StatefulSet with its /status and /scale.
var Resource = resource.Resource[*appsv1.StatefulSet]{
	Group:      appsv1.GroupName,
	Name:       "statefulsets",
	Singular:   "statefulset",
	ShortNames: []string{"sts"},
	Categories: []string{"all"},
	New:        func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} },
	NewList:    func() runtime.Object { return &appsv1.StatefulSetList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(s *appsv1.StatefulSet) *appsv1.StatefulSetSpec { return &s.Spec }),
	Status:     resource.PartOf(func(s *appsv1.StatefulSet) *appsv1.StatefulSetStatus { return &s.Status }),
	Strategy: resource.Strategy[*appsv1.StatefulSet]{
		// The name and an ordinal are the hostname of a Pod.
		Name:             apivalidation.NameIsDNSLabel,
		PrepareForCreate: dropUnserved,
		PrepareForUpdate: func(s, _ *appsv1.StatefulSet) { dropUnserved(s) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*appsv1.StatefulSet]{ValidateUpdate: ValidateStatusUpdate},
	Scale: &resource.Replicated[*appsv1.StatefulSet]{
		Desired:  func(s *appsv1.StatefulSet) **int32 { return &s.Spec.Replicas },
		Existing: func(s *appsv1.StatefulSet) int32 { return s.Status.Replicas },
		Selector: func(s *appsv1.StatefulSet) *metav1.LabelSelector { return s.Spec.Selector },
	},
	Columns: columns,
}

// dropUnserved leaves out what is alpha and off, also in the claims: the health of their volumes.
func dropUnserved(s *appsv1.StatefulSet) {
	podspec.DropUnserved(&s.Spec.Template.Spec)
	for i := range s.Spec.VolumeClaimTemplates {
		s.Spec.VolumeClaimTemplates[i].Status.HealthStatus = nil
	}
}
