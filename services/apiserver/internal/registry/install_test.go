package registry_test

import (
	"maps"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry"
)

// empty is a storage that only knows its type.
type empty struct{ object runtime.Object }

func (e empty) New() runtime.Object { return e.object }
func (e empty) Destroy()            {}

// Each version of a group serves the resources whose kind it has, and their subresources.
func TestServedIn(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{autoscalingv1.AddToScheme, autoscalingv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	storages := map[string]genericrest.Storage{
		"horizontalpodautoscalers":        empty{&autoscalingv2.HorizontalPodAutoscaler{}},
		"horizontalpodautoscalers/status": empty{&autoscalingv2.HorizontalPodAutoscaler{}},
		"scales":                          empty{&autoscalingv1.Scale{}},
	}
	for version, want := range map[schema.GroupVersion][]string{
		autoscalingv2.SchemeGroupVersion: {"horizontalpodautoscalers", "horizontalpodautoscalers/status"},
		autoscalingv1.SchemeGroupVersion: {"horizontalpodautoscalers", "horizontalpodautoscalers/status", "scales"},
	} {
		served, err := registry.ServedIn(version, scheme, storages)
		if got := slices.Sorted(maps.Keys(served)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s serves %v, %v, want %v", version, got, err, want)
		}
	}
}
