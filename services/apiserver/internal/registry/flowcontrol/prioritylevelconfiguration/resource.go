// Package prioritylevelconfiguration is the resource PriorityLevelConfiguration of group flowcontrol.apiserver.k8s.io:
// how many requests of a priority level are worked on at a time, and what becomes of the others.
//
//keelson:decision
package prioritylevelconfiguration

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// What a level has that says nothing else.
const (
	defaultShares           = 30
	defaultQueues           = 64
	defaultHandSize         = 8
	defaultQueueLengthLimit = 50
)

// level is what this package is about.
type level = flowcontrolv1.PriorityLevelConfiguration

// Resource is the PriorityLevelConfiguration with its /status.
var Resource = resource.Resource[*level]{
	Group:         flowcontrolv1.GroupName,
	Name:          "prioritylevelconfigurations",
	Singular:      "prioritylevelconfiguration",
	ClusterScoped: true,
	New:           func() *level { return &level{} },
	NewList:       func() runtime.Object { return &flowcontrolv1.PriorityLevelConfigurationList{} },
	Default:       Default,
	Spec:          resource.PartOf(func(l *level) *flowcontrolv1.PriorityLevelConfigurationSpec { return &l.Spec }),
	Status:        resource.PartOf(func(l *level) *flowcontrolv1.PriorityLevelConfigurationStatus { return &l.Status }),
	Strategy:      resource.Strategy[*level]{Validate: Validate},
	StatusStrategy: resource.Strategy[*level]{
		PrepareForUpdate: resource.KeepMetadata(func(l *level) *metav1.ObjectMeta { return &l.ObjectMeta }),
		ValidateUpdate:   func(l, _ *level) field.ErrorList { return ValidateStatus(l) },
		ResetFields:      []string{"metadata", "spec"},
	},
	Columns: resource.NewColumnsOf(viewOf,
		resource.NameColumnOf(func(v view) any { return v.Name }),
		resource.Column("Type", "string", flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"],
			func(v view) any { return string(v.Spec.Type) }),
		resource.Column("NominalConcurrencyShares", "string",
			flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"],
			func(v view) any { return v.shares }),
		resource.Column("Queues", "string", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queues"],
			func(v view) any { return v.queues }),
		resource.Column("HandSize", "string", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["handSize"],
			func(v view) any { return v.hand }),
		resource.Column("QueueLengthLimit", "string",
			flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queueLengthLimit"],
			func(v view) any { return v.length }),
		resource.AgeColumn[view](),
	),
}

// Default fills in what a client left out.
func Default(l *level) {
	if exempt := l.Spec.Exempt; exempt != nil {
		defaults.SetPtr(&exempt.NominalConcurrencyShares, 0)
		defaults.SetPtr(&exempt.LendablePercent, 0)
	}
	limited := l.Spec.Limited
	if limited == nil {
		return
	}
	defaults.SetPtr(&limited.NominalConcurrencyShares, defaultShares)
	defaults.SetPtr(&limited.LendablePercent, 0)
	if queuing := limited.LimitResponse.Queuing; queuing != nil {
		defaults.Set(&queuing.Queues, defaultQueues)
		defaults.Set(&queuing.HandSize, defaultHandSize)
		defaults.Set(&queuing.QueueLengthLimit, defaultQueueLengthLimit)
	}
}

// view is a level with its numbers as they are shown.
type view struct {
	*level
	shares, queues, hand, length any
}

func viewOf(l *level) view {
	v := view{l, table.None, table.None, table.None, table.None}
	if l.Spec.Limited == nil {
		return v
	}
	if shares := l.Spec.Limited.NominalConcurrencyShares; shares != nil {
		v.shares = int64(*shares)
	}
	if q := l.Spec.Limited.LimitResponse.Queuing; q != nil {
		v.queues, v.hand, v.length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
	}
	return v
}
