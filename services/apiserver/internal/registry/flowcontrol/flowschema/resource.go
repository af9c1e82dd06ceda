// Package flowschema is the resource FlowSchema of group flowcontrol.apiserver.k8s.io: which requests go to which
// priority level, and which of them take turns.
//
//keelson:decision
package flowschema

import (
	"cmp"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// defaultPrecedence is that of a schema which names none.
const defaultPrecedence = 1000

// Resource is the FlowSchema with its /status.
var Resource = resource.Resource[*flowcontrolv1.FlowSchema]{
	Group:         flowcontrolv1.GroupName,
	Name:          "flowschemas",
	Singular:      "flowschema",
	ClusterScoped: true,
	New:           func() *flowcontrolv1.FlowSchema { return &flowcontrolv1.FlowSchema{} },
	NewList:       func() runtime.Object { return &flowcontrolv1.FlowSchemaList{} },
	Default:       Default,
	Spec:          resource.PartOf(func(s *flowcontrolv1.FlowSchema) *flowcontrolv1.FlowSchemaSpec { return &s.Spec }),
	Status: resource.PartOf(func(s *flowcontrolv1.FlowSchema) *flowcontrolv1.FlowSchemaStatus {
		return &s.Status
	}),
	Strategy: resource.Strategy[*flowcontrolv1.FlowSchema]{Validate: Validate},
	StatusStrategy: resource.Strategy[*flowcontrolv1.FlowSchema]{
		PrepareForUpdate: resource.KeepMetadata(func(s *flowcontrolv1.FlowSchema) *metav1.ObjectMeta {
			return &s.ObjectMeta
		}),
		ValidateUpdate: func(s, _ *flowcontrolv1.FlowSchema) field.ErrorList { return ValidateStatus(s) },
		ResetFields:    []string{"metadata", "spec"},
	},
	Columns: columns(),
}

// Default fills in what a client left out.
func Default(s *flowcontrolv1.FlowSchema) {
	defaults.Set(&s.Spec.MatchingPrecedence, defaultPrecedence)
}

// columns list the schemas in the order in which they are tried.
func columns() resource.Columns[*flowcontrolv1.FlowSchema] {
	c := resource.NewColumns(
		resource.NameColumn[*flowcontrolv1.FlowSchema](),
		resource.Column("PriorityLevel", "string",
			flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"],
			func(s *flowcontrolv1.FlowSchema) any { return s.Spec.PriorityLevelConfiguration.Name }),
		resource.Column("MatchingPrecedence", "string",
			flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["matchingPrecedence"],
			func(s *flowcontrolv1.FlowSchema) any { return int64(s.Spec.MatchingPrecedence) }),
		resource.Column("DistinguisherMethod", "string",
			flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["distinguisherMethod"],
			func(s *flowcontrolv1.FlowSchema) any { return distinguisher(s.Spec.DistinguisherMethod) }),
		resource.AgeColumn[*flowcontrolv1.FlowSchema](),
		resource.Column("MissingPL", "string", "Whether the PriorityLevelConfiguration is missing.",
			func(s *flowcontrolv1.FlowSchema) any { return missing(s.Status.Conditions) }),
	)
	c.Order = func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), cmp.Compare(a.Name, b.Name))
	}
	return c
}

func distinguisher(method *flowcontrolv1.FlowDistinguisherMethod) string {
	if method == nil {
		return table.None
	}
	return string(method.Type)
}

// missing is what is known of the level.
func missing(conditions []flowcontrolv1.FlowSchemaCondition) string {
	for i := range conditions {
		if conditions[i].Type == flowcontrolv1.FlowSchemaConditionDangling {
			return string(conditions[i].Status)
		}
	}
	return "?"
}
