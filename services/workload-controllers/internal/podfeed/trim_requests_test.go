package podfeed

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DEP-210: what an autoscaler compares the use of Pods with is kept, once for all Pods that are alike.
func TestRequestsAreKept(t *testing.T) {
	asks := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
	}
	always := corev1.ContainerRestartPolicyAlways
	whole := asks("2")
	for _, row := range []struct {
		name string
		spec corev1.PodSpec
		want []corev1.Container
	}{
		{"nothing", corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}, nil},
		{"only while it starts", corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init",
			Resources: asks("1")}},
			Containers: []corev1.Container{{Name: "main"}}}, nil},
		{"one of two", corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i", Resources: asks("1")},
			{Name: "other"}}}, []corev1.Container{{Name: "main", Resources: asks("1")}, {Name: "other"}}},
		{"a sidecar", corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init", Resources: asks("1")},
			{Name: "side", RestartPolicy: &always, Resources: asks("3")}},
			Containers: []corev1.Container{{Name: "main"}}},
			[]corev1.Container{{Name: "side", Resources: asks("3")}, {Name: "main"}}},
		{"the whole", corev1.PodSpec{Resources: &whole, Containers: []corev1.Container{{Name: "main"}}},
			[]corev1.Container{{Resources: asks("2")}, {Name: "main"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			kept := func() []corev1.Container {
				trimmed, err := Trim(&corev1.Pod{Spec: *row.spec.DeepCopy()})
				if err != nil {
					t.Fatal(err)
				}
				return trimmed.(*corev1.Pod).Spec.InitContainers
			}
			first, second := kept(), kept()
			if !equality.Semantic.DeepEqual(first, row.want) || len(first) > 0 && &first[0] != &second[0] {
				t.Errorf("%+v, then %+v, want %+v", first, second, row.want)
			}
		})
	}
}
