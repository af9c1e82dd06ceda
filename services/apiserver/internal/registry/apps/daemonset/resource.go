// Package daemonset is the API resource daemonsets of group apps: one Pod of a template on each node that it is for.
package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is the DaemonSet with its /status.
var Resource = rest.Resource[*appsv1.DaemonSet]{
	Group:      appsv1.GroupName,
	Name:       "daemonsets",
	Singular:   "daemonset",
	ShortNames: []string{"ds"},
	Categories: []string{"all"},
	New:        func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} },
	NewList:    func() runtime.Object { return &appsv1.DaemonSetList{} },
	Default:    Default,
	Spec:       rest.PartOf(func(d *appsv1.DaemonSet) *appsv1.DaemonSetSpec { return &d.Spec }),
	Status:     rest.PartOf(func(d *appsv1.DaemonSet) *appsv1.DaemonSetStatus { return &d.Status }),
	Strategy: rest.Strategy[*appsv1.DaemonSet]{
		PrepareForCreate: prepareForCreate,
		PrepareForUpdate: prepareForUpdate,
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: rest.Strategy[*appsv1.DaemonSet]{ValidateUpdate: ValidateStatusUpdate},
	Columns:        columns,
}
