// Package replicaset is the API resource replicasets of group apps: a desired count of Pods of one template.
//
//keelson:decision
package replicaset

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the ReplicaSet with its /status and /scale.
var Resource = resource.Resource[*appsv1.ReplicaSet]{
	Group:      appsv1.GroupName,
	Name:       "replicasets",
	Singular:   "replicaset",
	ShortNames: []string{"rs"},
	Categories: []string{"all"},
	New:        func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} },
	NewList:    func() runtime.Object { return &appsv1.ReplicaSetList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(rs *appsv1.ReplicaSet) *appsv1.ReplicaSetSpec { return &rs.Spec }),
	Status:     resource.PartOf(func(rs *appsv1.ReplicaSet) *appsv1.ReplicaSetStatus { return &rs.Status }),
	Strategy: resource.Strategy[*appsv1.ReplicaSet]{
		PrepareForCreate: func(rs *appsv1.ReplicaSet) { podspec.DropUnserved(&rs.Spec.Template.Spec) },
		PrepareForUpdate: func(rs, _ *appsv1.ReplicaSet) { podspec.DropUnserved(&rs.Spec.Template.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*appsv1.ReplicaSet]{ValidateUpdate: ValidateStatusUpdate},
	Scale: &resource.Replicated[*appsv1.ReplicaSet]{
		Desired:  func(rs *appsv1.ReplicaSet) **int32 { return &rs.Spec.Replicas },
		Existing: func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas },
		Selector: func(rs *appsv1.ReplicaSet) *metav1.LabelSelector { return rs.Spec.Selector },
	},
	Columns: columns,
	Fields: []resource.Field[*appsv1.ReplicaSet]{
		{Label: "status.replicas", Value: func(rs *appsv1.ReplicaSet) string {
			return strconv.Itoa(int(rs.Status.Replicas))
		}},
	},
}
