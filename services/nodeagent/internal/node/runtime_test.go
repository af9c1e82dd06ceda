package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/runtime"
)

// The features are those that the runtime reports, and stay while it does not answer.
func TestRuntimeOf(t *testing.T) {
	able := RuntimeOf(runtime.Status{SupplementalGroupsPolicy: ptr.To(true), Handlers: []runtime.Handler{
		{UserNamespaces: true}, {Name: "kata", RecursiveReadOnlyMounts: true}}})
	want := []corev1.NodeRuntimeHandler{
		{Features: &corev1.NodeRuntimeHandlerFeatures{UserNamespaces: ptr.To(true),
			RecursiveReadOnlyMounts: ptr.To(false)}},
		{Name: "kata", Features: &corev1.NodeRuntimeHandlerFeatures{UserNamespaces: ptr.To(false),
			RecursiveReadOnlyMounts: ptr.To(true)}}}
	features := &corev1.NodeFeatures{SupplementalGroupsPolicy: ptr.To(true)}
	status := statusOf(facts(), Health{Runtime: able}, &corev1.NodeStatus{}, now)
	for range 2 {
		if !apiequality.Semantic.DeepEqual(status.RuntimeHandlers, want) ||
			!apiequality.Semantic.DeepEqual(status.Features, features) {
			t.Errorf("handlers %v, features %v", status.RuntimeHandlers, status.Features)
		}
		status = statusOf(facts(), Health{}, &status, now) // the runtime does not answer
	}
	older := statusOf(facts(), Health{Runtime: RuntimeOf(runtime.Status{})}, &status, now)
	if older.RuntimeHandlers != nil || older.Features != nil {
		t.Errorf("of a runtime that says nothing: %v, %v", older.RuntimeHandlers, older.Features)
	}
}
