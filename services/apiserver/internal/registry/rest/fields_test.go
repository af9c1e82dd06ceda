package rest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"
)

// A list of one node's Pods reads the index, and every other list does not.
func TestIndexedField(t *testing.T) {
	pods := Resource[*corev1.Pod]{Fields: []Field[*corev1.Pod]{
		{Label: "spec.nodeName", Value: func(p *corev1.Pod) string { return p.Spec.NodeName }, Indexed: true},
		{Label: "status.phase", Value: func(p *corev1.Pod) string { return string(p.Status.Phase) }},
	}}
	for selector, want := range map[string][]storage.MatchValue{
		"spec.nodeName=a":                      {{IndexName: "f:spec.nodeName", Value: "a"}},
		"spec.nodeName=a,status.phase=Running": {{IndexName: "f:spec.nodeName", Value: "a"}},
		"spec.nodeName!=a":                     nil,
		"status.phase=Running":                 nil,
		"":                                     nil,
	} {
		predicate := pods.predicate(labels.Everything(), fields.ParseSelectorOrDie(selector))
		if got := predicate.MatcherIndex(t.Context()); !slices.Equal(got, want) {
			t.Errorf("%q reads the indexes %v, want %v", selector, got, want)
		}
	}
}
