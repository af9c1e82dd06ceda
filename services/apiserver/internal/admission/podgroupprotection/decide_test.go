package podgroupprotection

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestProtect(t *testing.T) {
	const protects = "scheduling.k8s.io/podgroup-protection"
	for name, row := range map[string]struct {
		object runtime.Object
		want   []string
	}{
		"a group": {&schedulingv1beta1.PodGroup{}, []string{protects}},
		"one with a finalizer": {&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Finalizers: []string{"a/b"}}},
			[]string{"a/b", protects}},
		"a workload":     {&schedulingv1beta1.Workload{}, nil},
		"something else": {&corev1.Pod{}, nil},
	} {
		for range 2 { // A second pass changes nothing.
			protect(row.object)
			accessor, err := meta.Accessor(row.object)
			if err != nil {
				t.Fatal(err)
			}
			if got := accessor.GetFinalizers(); !slices.Equal(got, row.want) {
				t.Errorf("%s: %v, want %v", name, got, row.want)
			}
		}
	}
}
