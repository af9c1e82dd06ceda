package runtimeclass_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/runtimeclass"
)

func amount(memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
}

func TestApply(t *testing.T) {
	class := &nodev1.RuntimeClass{Overhead: &nodev1.Overhead{PodFixed: amount("1Gi")},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"a": "1", "b": "2"},
			Tolerations: []corev1.Toleration{{Key: "x"}, {Key: "y"}}}}
	plain := &nodev1.RuntimeClass{}
	tolerations := []corev1.Toleration{{Key: "z"}, {Key: "y"}}
	for _, row := range []struct {
		name      string
		class     *nodev1.RuntimeClass
		pod, want corev1.PodSpec
		err       string
	}{
		{"no class", nil, corev1.PodSpec{}, corev1.PodSpec{}, ""},
		{"overhead of no class", nil, corev1.PodSpec{Overhead: amount("1Gi")}, corev1.PodSpec{},
			"pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"},
		{"overhead of a class without", plain, corev1.PodSpec{Overhead: amount("1Gi")}, corev1.PodSpec{},
			"pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"},
		{"a class that says nothing", plain, corev1.PodSpec{}, corev1.PodSpec{}, ""},
		{"all of it", class, corev1.PodSpec{}, corev1.PodSpec{Overhead: amount("1Gi"),
			NodeSelector: map[string]string{"a": "1", "b": "2"}, Tolerations: []corev1.Toleration{{Key: "x"},
				{Key: "y"}}}, ""},
		{"added to what the Pod says", class, corev1.PodSpec{Overhead: amount("1024Mi"),
			NodeSelector: map[string]string{"b": "2", "c": "3"}, Tolerations: tolerations},
			corev1.PodSpec{Overhead: amount("1Gi"), NodeSelector: map[string]string{"a": "1", "b": "2", "c": "3"},
				Tolerations: []corev1.Toleration{{Key: "z"}, {Key: "y"}, {Key: "x"}}}, ""},
		{"another overhead", class, corev1.PodSpec{Overhead: amount("2Gi")}, corev1.PodSpec{},
			"pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"},
		{"other nodes", class, corev1.PodSpec{NodeSelector: map[string]string{"b": "3"}}, corev1.PodSpec{},
			"conflict: runtimeClass.scheduling.nodeSelector[b] = 2; pod.spec.nodeSelector[b] = 3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: *row.pod.DeepCopy()}
			got := ""
			err := runtimeclass.Apply(pod, row.class)
			if err == nil {
				err = runtimeclass.Check(pod, row.class)
			}
			if err != nil {
				got = err.Error()
			}
			if got != row.err || got == "" && !equality.Semantic.DeepEqual(pod.Spec, row.want) {
				t.Fatalf("%q and %+v, want %q and %+v", got, pod.Spec, row.err, row.want)
			}
			again := pod.DeepCopy()
			if err := runtimeclass.Apply(again, row.class); err == nil && !equality.Semantic.DeepEqual(again, pod) {
				t.Errorf("a second pass makes %+v", again.Spec)
			}
		})
	}
	if !equality.Semantic.DeepEqual(class.Scheduling.NodeSelector, map[string]string{"a": "1", "b": "2"}) {
		t.Errorf("the class became %+v", class)
	}
	// A plugin that changes the Pod after this one is bound by the class too.
	if err := runtimeclass.Check(&corev1.Pod{}, class); err == nil {
		t.Error("a Pod that lost its overhead is taken")
	}
}
