// Package horizontalpodautoscaler is the API resource horizontalpodautoscalers of group autoscaling: between which
// bounds and by which metrics the replicas of a workload follow its load. It is served as autoscaling/v1 too.
//
//keelson:decision
package horizontalpodautoscaler

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
	"keelson.dev/services/apiserver/internal/scheme"
)

type autoscaler = autoscalingv2.HorizontalPodAutoscaler

// Resource is the HorizontalPodAutoscaler with its /status.
var Resource = resource.Resource[*autoscaler]{
	Group:      autoscalingv2.GroupName,
	Name:       "horizontalpodautoscalers",
	Singular:   "horizontalpodautoscaler",
	ShortNames: []string{"hpa"},
	Categories: []string{"all"},
	New:        func() *autoscaler { return &autoscaler{} },
	NewList:    func() runtime.Object { return &autoscalingv2.HorizontalPodAutoscalerList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(a *autoscaler) *autoscalingv2.HorizontalPodAutoscalerSpec { return &a.Spec }),
	Status:     resource.PartOf(func(a *autoscaler) *autoscalingv2.HorizontalPodAutoscalerStatus { return &a.Status }),
	Strategy: resource.Strategy[*autoscaler]{
		PrepareForCreate: dropV1Annotations,
		PrepareForUpdate: func(a, _ *autoscaler) { dropV1Annotations(a) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*autoscaler]{
		PrepareForUpdate: func(a, _ *autoscaler) { dropV1Annotations(a) },
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Columns:  columns,
	Register: registerV1,
}

// registerV1 registers the defaults of autoscaling/v1. Which of them it needs its annotations say, so they are those of
// the object that it means.
func registerV1(s *runtime.Scheme) {
	s.AddTypeDefaultingFunc(&autoscalingv1.HorizontalPodAutoscaler{}, func(obj any) {
		in, meant := obj.(*autoscalingv1.HorizontalPodAutoscaler), &autoscaler{}
		kind := in.TypeMeta
		convert(s, in, meant)
		Default(meant)
		convert(s, meant, in)
		in.TypeMeta = kind
	})
}

// convert cannot fail: the two types know each other in every scheme of this server.
func convert(s *runtime.Scheme, from, to runtime.Object) {
	if err := s.Convert(from, to, nil); err != nil {
		panic(fmt.Sprintf("converting a HorizontalPodAutoscaler: %v", err))
	}
}

// dropV1Annotations takes off what only an object of autoscaling/v1 has a meaning for.
func dropV1Annotations(a *autoscaler) {
	for _, key := range scheme.AutoscalerAnnotations() {
		delete(a.Annotations, key)
	}
}
