package controller

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/introspect"
)

// Who leads explains by what it knows; who does not says who does.
func TestExplain(t *testing.T) {
	state := introspect.NewState("test", "v0")
	g, err := New(Options{Service: "test", Config: &rest.Config{Host: "http://apiserver"}, Scheme: scheme.Scheme,
		Log: zap.NewNop(), State: state, Controllers: []Registration{{Name: "job", Explains: "Job"}}})
	if err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		got, known := g.explainer("job")(t.Context(), "default", "pi")
		if !known || !strings.Contains(got.Summary, want) {
			t.Errorf("%q, want %q in it", got.Summary, want)
		}
	}
	says("does not lead test.job, and does not know who does")
	state.Campaigning("test.job")
	state.Elected("test.job", "other-1")
	says("does not lead test.job: other-1 does")
	s := &Setup{explain: func(e introspect.Explainer) { g.setExplainer("job", e) }}
	s.Explain(func(_ context.Context, namespace, name string) (introspect.Explanation, bool) {
		return introspect.Explanation{Summary: namespace + "/" + name + " waits"}, true
	})
	says("default/pi waits")
	g.setExplainer("job", nil)
	says("does not lead test.job")
}
