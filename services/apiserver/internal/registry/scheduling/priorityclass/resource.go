// Package priorityclass is the resource PriorityClass of group scheduling.k8s.io: a name for a priority of Pods.
//
//keelson:decision
package priorityclass

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = schedulingv1.PriorityClass{}.SwaggerDoc()

// Resource is the PriorityClass.
var Resource = resource.Resource[*schedulingv1.PriorityClass]{
	Group:         schedulingv1.GroupName,
	Name:          "priorityclasses",
	Singular:      "priorityclass",
	ShortNames:    []string{"pc"},
	ClusterScoped: true,
	New:           func() *schedulingv1.PriorityClass { return &schedulingv1.PriorityClass{} },
	NewList:       func() runtime.Object { return &schedulingv1.PriorityClassList{} },
	Default:       Default,
	Strategy: resource.Strategy[*schedulingv1.PriorityClass]{
		PrepareForCreate: func(pc *schedulingv1.PriorityClass) { pc.Generation = 1 },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
		ValidateDelete:   validateDelete,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*schedulingv1.PriorityClass](),
		resource.Column("Value", "integer", help["value"],
			func(pc *schedulingv1.PriorityClass) any { return int64(pc.Value) }),
		resource.Column("Global-Default", "boolean", help["globalDefault"],
			func(pc *schedulingv1.PriorityClass) any { return pc.GlobalDefault }),
		resource.AgeColumn[*schedulingv1.PriorityClass](),
		resource.Column("PreemptionPolicy", "string", help["preemptionPolicy"],
			func(pc *schedulingv1.PriorityClass) any { return string(ptr.Deref(pc.PreemptionPolicy, "")) }),
	),
}

// Default fills in the preemption policy.
func Default(pc *schedulingv1.PriorityClass) {
	defaults.SetPtr(&pc.PreemptionPolicy, corev1.PreemptLowerPriority)
}
