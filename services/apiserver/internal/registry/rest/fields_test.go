package rest

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"

	"keelson.dev/services/apiserver/internal/resource"
)

// A list of one node's Pods reads the index, and every other list does not.
func TestIndexedField(t *testing.T) {
	pods := Serve(resource.Resource[*corev1.Pod]{Fields: []resource.Field[*corev1.Pod]{
		{Label: "spec.nodeName", Value: func(p *corev1.Pod) string { return p.Spec.NodeName }, Indexed: true},
		{Label: "status.phase", Value: func(p *corev1.Pod) string { return string(p.Status.Phase) }},
	}})
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

// A field that an object does not have takes no room in the watch cache, and selectors see it empty.
func TestEmptyFields(t *testing.T) {
	pods := Serve(resource.Resource[*corev1.Pod]{Fields: []resource.Field[*corev1.Pod]{
		{Label: "spec.nodeName", Value: func(p *corev1.Pod) string { return p.Spec.NodeName }},
		{Label: "status.phase", Value: func(p *corev1.Pod) string { return string(p.Status.Phase) }},
	}})
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.Status.Phase = "p", "n", corev1.PodPending
	_, set, err := pods.Attributes(p)
	if want := (fields.Set{"metadata.name": "p", "metadata.namespace": "n", "status.phase": "Pending"}); err != nil ||
		!maps.Equal(set, want) {
		t.Errorf("%v, %v, want %v", set, err, want)
	}
	for selector, want := range map[string]bool{
		"spec.nodeName=": true, "spec.nodeName!=": false, "spec.nodeName=a": false, "spec.nodeName!=a": true,
		"spec.nodeName=,status.phase=Pending": true, "status.phase!=Pending": false,
	} {
		predicate := pods.predicate(labels.Everything(), fields.ParseSelectorOrDie(selector))
		if got, err := predicate.Matches(p); err != nil || got != want {
			t.Errorf("%q selects a Pod without a node: %t, %v", selector, got, err)
		}
	}
}
