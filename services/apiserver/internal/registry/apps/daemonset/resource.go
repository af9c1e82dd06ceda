// Package daemonset is the API resource daemonsets of group apps: one Pod of a template on each node that it is for.
//
//keelson:decision
package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the DaemonSet with its /status.
var Resource = resource.Resource[*appsv1.DaemonSet]{
	Group:      appsv1.GroupName,
	Name:       "daemonsets",
	Singular:   "daemonset",
	ShortNames: []string{"ds"},
	Categories: []string{"all"},
	New:        func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} },
	NewList:    func() runtime.Object { return &appsv1.DaemonSetList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(d *appsv1.DaemonSet) *appsv1.DaemonSetSpec { return &d.Spec }),
	Status:     resource.PartOf(func(d *appsv1.DaemonSet) *appsv1.DaemonSetStatus { return &d.Status }),
	Strategy: resource.Strategy[*appsv1.DaemonSet]{
		PrepareForCreate: prepareForCreate,
		PrepareForUpdate: prepareForUpdate,
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*appsv1.DaemonSet]{ValidateUpdate: ValidateStatusUpdate},
	Columns:        columns,
}
