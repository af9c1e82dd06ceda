// Package horizontalpodautoscaler is the API resource horizontalpodautoscalers of group autoscaling: between which
// bounds and by which metrics the replicas of a workload follow its load. It is served as autoscaling/v1 too.
package horizontalpodautoscaler

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/scheme"
)

// Resource is the HorizontalPodAutoscaler with its /status.
var Resource = Versions{rest.Resource[*autoscalingv2.HorizontalPodAutoscaler]{
	Group:      autoscalingv2.GroupName,
	Name:       "horizontalpodautoscalers",
	Singular:   "horizontalpodautoscaler",
	ShortNames: []string{"hpa"},
	Categories: []string{"all"},
	New:        func() *autoscalingv2.HorizontalPodAutoscaler { return &autoscalingv2.HorizontalPodAutoscaler{} },
	NewList:    func() runtime.Object { return &autoscalingv2.HorizontalPodAutoscalerList{} },
	Default:    Default,
	Spec: rest.PartOf(func(a *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscalerSpec {
		return &a.Spec
	}),
	Status: rest.PartOf(func(a *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscalerStatus {
		return &a.Status
	}),
	Strategy: rest.Strategy[*autoscalingv2.HorizontalPodAutoscaler]{
		PrepareForCreate: dropV1Annotations,
		PrepareForUpdate: func(a, _ *autoscalingv2.HorizontalPodAutoscaler) { dropV1Annotations(a) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: rest.Strategy[*autoscalingv2.HorizontalPodAutoscaler]{
		PrepareForUpdate: func(a, _ *autoscalingv2.HorizontalPodAutoscaler) { dropV1Annotations(a) },
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Columns: columns,
}}

// Versions is a resource whose objects of autoscaling/v1 have the defaults of v2.
type Versions struct {
	rest.Resource[*autoscalingv2.HorizontalPodAutoscaler]
}

// AddToScheme registers the defaults for both versions. Which of them v1 needs its annotations say, so they are those
// of the object that it means.
func (v Versions) AddToScheme(s *runtime.Scheme) error {
	s.AddTypeDefaultingFunc(&autoscalingv1.HorizontalPodAutoscaler{}, func(obj any) {
		in, meant := obj.(*autoscalingv1.HorizontalPodAutoscaler), v.New()
		kind := in.TypeMeta
		convert(s, in, meant)
		v.Default(meant)
		convert(s, meant, in)
		in.TypeMeta = kind
	})
	return v.Resource.AddToScheme(s)
}

// convert cannot fail: the two types know each other in every scheme of this server.
func convert(s *runtime.Scheme, from, to runtime.Object) {
	if err := s.Convert(from, to, nil); err != nil {
		panic(fmt.Sprintf("converting a HorizontalPodAutoscaler: %v", err))
	}
}

// dropV1Annotations takes off what only an object of autoscaling/v1 has a meaning for.
func dropV1Annotations(a *autoscalingv2.HorizontalPodAutoscaler) {
	for _, key := range scheme.AutoscalerAnnotations() {
		delete(a.Annotations, key)
	}
}
