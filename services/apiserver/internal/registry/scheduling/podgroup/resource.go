// Package podgroup is the resource PodGroup of group scheduling.k8s.io: Pods that are scheduled together.
//
//keelson:decision
package podgroup

import (
	"cmp"
	"strconv"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = schedulingv1beta1.PodGroupSpec{}.SwaggerDoc()

// Resource is the PodGroup with its /status.
var Resource = resource.Resource[*schedulingv1beta1.PodGroup]{
	Group:    schedulingv1beta1.GroupName,
	Name:     "podgroups",
	Singular: "podgroup",
	New:      func() *schedulingv1beta1.PodGroup { return &schedulingv1beta1.PodGroup{} },
	NewList:  func() runtime.Object { return &schedulingv1beta1.PodGroupList{} },
	Default:  Default,
	Spec:     resource.PartOf(func(g *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroupSpec { return &g.Spec }),
	Status: resource.PartOf(func(g *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroupStatus {
		return &g.Status
	}),
	Strategy: resource.Strategy[*schedulingv1beta1.PodGroup]{
		PrepareForCreate: func(g *schedulingv1beta1.PodGroup) { DropUnserved(&g.Spec) },
		PrepareForUpdate: func(g, _ *schedulingv1beta1.PodGroup) { DropUnserved(&g.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*schedulingv1beta1.PodGroup]{
		PrepareForUpdate: func(g, _ *schedulingv1beta1.PodGroup) { g.Status.ResourceClaimStatuses = nil },
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*schedulingv1beta1.PodGroup](),
		resource.Column("Policy", "string", help["schedulingPolicy"],
			func(g *schedulingv1beta1.PodGroup) any { return policyName(&g.Spec.SchedulingPolicy) }),
		resource.Column("Min Count", "string", schedulingv1beta1.GangSchedulingPolicy{}.SwaggerDoc()["minCount"],
			func(g *schedulingv1beta1.PodGroup) any { return minCount(&g.Spec.SchedulingPolicy) }),
		resource.Column("Scheduled", "string", "Whether the group has been scheduled, or why it has not.",
			func(g *schedulingv1beta1.PodGroup) any { return scheduled(&g.Status) }),
		resource.AgeColumn[*schedulingv1beta1.PodGroup](),
		resource.Column("Workload", "string", help["workloadRef"],
			func(g *schedulingv1beta1.PodGroup) any { return workloadName(&g.Spec) }).Wide(),
		resource.Column("Priority-Class", "string", help["priorityClassName"],
			func(g *schedulingv1beta1.PodGroup) any { return cmp.Or(g.Spec.PriorityClassName, table.None) }).Wide(),
	),
}

// Default lets the Pods of a group be disrupted one by one.
func Default(g *schedulingv1beta1.PodGroup) {
	if g.Spec.DisruptionMode == nil {
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
	}
}

// DropUnserved clears the fields of features that this cluster does not serve. The API ignores such fields instead of
// refusing them.
func DropUnserved(spec *schedulingv1beta1.PodGroupSpec) {
	spec.ParentCompositePodGroupName = nil
	spec.PreemptionPolicy = nil
	spec.ResourceClaims = nil
}

func policyName(p *schedulingv1beta1.PodGroupSchedulingPolicy) string {
	if p.Gang != nil {
		return "Gang"
	}
	return "Basic"
}

func minCount(p *schedulingv1beta1.PodGroupSchedulingPolicy) string {
	if p.Gang == nil {
		return table.None
	}
	return strconv.Itoa(int(p.Gang.MinCount))
}

func scheduled(status *schedulingv1beta1.PodGroupStatus) string {
	c := meta.FindStatusCondition(status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	switch {
	case c == nil:
		return table.None
	case c.Status == "True":
		return "True"
	}
	return c.Reason
}

func workloadName(spec *schedulingv1beta1.PodGroupSpec) string {
	if spec.WorkloadRef == nil {
		return table.None
	}
	return spec.WorkloadRef.WorkloadName
}
