// Package workload is the resource Workload of group scheduling.k8s.io: templates of the PodGroups of one application.
//
//keelson:decision
package workload

import (
	"strings"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/scheduling/podgroup"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = schedulingv1beta1.WorkloadSpec{}.SwaggerDoc()

// Resource is the Workload. It has no status.
var Resource = resource.Resource[*schedulingv1beta1.Workload]{
	Group:    schedulingv1beta1.GroupName,
	Name:     "workloads",
	Singular: "workload",
	New:      func() *schedulingv1beta1.Workload { return &schedulingv1beta1.Workload{} },
	NewList:  func() runtime.Object { return &schedulingv1beta1.WorkloadList{} },
	Spec:     resource.PartOf(func(w *schedulingv1beta1.Workload) *schedulingv1beta1.WorkloadSpec { return &w.Spec }),
	Strategy: resource.Strategy[*schedulingv1beta1.Workload]{
		PrepareForCreate: func(w *schedulingv1beta1.Workload) { dropUnserved(&w.Spec) },
		PrepareForUpdate: func(w, _ *schedulingv1beta1.Workload) { dropUnserved(&w.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*schedulingv1beta1.Workload](),
		resource.Column("Controller", "string", help["controllerRef"],
			func(w *schedulingv1beta1.Workload) any { return controller(&w.Spec) }),
		resource.Column("Pod Groups", "string", help["podGroupTemplates"],
			func(w *schedulingv1beta1.Workload) any { return templateNames(&w.Spec) }),
		resource.AgeColumn[*schedulingv1beta1.Workload](),
	),
}

// dropUnserved clears the fields of features that this cluster does not serve.
func dropUnserved(spec *schedulingv1beta1.WorkloadSpec) {
	spec.CompositePodGroupTemplates = nil
	for i := range spec.PodGroupTemplates {
		t := &spec.PodGroupTemplates[i]
		group := groupOf(t)
		podgroup.DropUnserved(&group)
		t.ResourceClaims, t.PreemptionPolicy = group.ResourceClaims, group.PreemptionPolicy
	}
}

// groupOf returns the group that is made from a template.
func groupOf(t *schedulingv1beta1.PodGroupTemplate) schedulingv1beta1.PodGroupSpec {
	return schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy:      t.SchedulingPolicy,
		SchedulingConstraints: t.SchedulingConstraints,
		ResourceClaims:        t.ResourceClaims,
		DisruptionMode:        t.DisruptionMode,
		PriorityClassName:     t.PriorityClassName,
		Priority:              t.Priority,
		PreemptionPolicy:      t.PreemptionPolicy,
	}
}

func controller(spec *schedulingv1beta1.WorkloadSpec) string {
	if spec.ControllerRef == nil {
		return table.None
	}
	return spec.ControllerRef.Kind + "/" + spec.ControllerRef.Name
}

func templateNames(spec *schedulingv1beta1.WorkloadSpec) string {
	names := make([]string, 0, len(spec.PodGroupTemplates))
	for i := range spec.PodGroupTemplates {
		names = append(names, spec.PodGroupTemplates[i].Name)
	}
	return strings.Join(names, ",")
}
