// Package priorityclass is the resource PriorityClass of group scheduling.k8s.io: a name for a priority of Pods.
package priorityclass

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var help = schedulingv1.PriorityClass{}.SwaggerDoc()

// Resource is the PriorityClass.
var Resource = rest.Resource[*schedulingv1.PriorityClass]{
	Group:         schedulingv1.GroupName,
	Name:          "priorityclasses",
	Singular:      "priorityclass",
	ShortNames:    []string{"pc"},
	ClusterScoped: true,
	New:           func() *schedulingv1.PriorityClass { return &schedulingv1.PriorityClass{} },
	NewList:       func() runtime.Object { return &schedulingv1.PriorityClassList{} },
	Default:       Default,
	Strategy: rest.Strategy[*schedulingv1.PriorityClass]{
		PrepareForCreate: func(pc *schedulingv1.PriorityClass) { pc.Generation = 1 },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	Wrap: func(s *rest.Storage) genericrest.Storage { return &storage{s} },
	Columns: rest.NewColumns(
		rest.NameColumn[*schedulingv1.PriorityClass](),
		rest.Column("Value", "integer", help["value"],
			func(pc *schedulingv1.PriorityClass) any { return int64(pc.Value) }),
		rest.Column("Global-Default", "boolean", help["globalDefault"],
			func(pc *schedulingv1.PriorityClass) any { return pc.GlobalDefault }),
		rest.AgeColumn[*schedulingv1.PriorityClass](),
		rest.Column("PreemptionPolicy", "string", help["preemptionPolicy"],
			func(pc *schedulingv1.PriorityClass) any { return string(ptr.Deref(pc.PreemptionPolicy, "")) }),
	),
}

// Default fills in the preemption policy.
func Default(pc *schedulingv1.PriorityClass) {
	defaults.SetPtr(&pc.PreemptionPolicy, corev1.PreemptLowerPriority)
}
