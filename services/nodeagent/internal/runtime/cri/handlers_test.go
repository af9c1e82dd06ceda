package cri

import (
	"slices"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/runtime"
)

// The handlers are sorted by name, so that the list changes only if they do, and each has its own features.
func TestHandlers(t *testing.T) {
	told := []*cri.RuntimeHandler{
		{Name: "runc", Features: &cri.RuntimeHandlerFeatures{UserNamespaces: true}},
		{Name: "", Features: &cri.RuntimeHandlerFeatures{UserNamespaces: true, RecursiveReadOnlyMounts: true}},
		{Name: "old"},
	}
	want := []runtime.Handler{{UserNamespaces: true, RecursiveReadOnlyMounts: true}, {Name: "old"},
		{Name: "runc", UserNamespaces: true}}
	for range 2 {
		got := handlers(told)
		if !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		slices.Reverse(told)
	}
	status := runtime.Status{Handlers: want}
	for name, able := range map[string]runtime.Handler{"": want[0], "old": want[1], "runc": want[2],
		"gone": {Name: "gone"}} {
		if got := status.Handler(name); got != able {
			t.Errorf("handler %q: %+v, want %+v", name, got, able)
		}
	}
}
