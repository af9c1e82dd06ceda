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

// The leader explains by what it knows; a standby names the leader.
func TestExplain(t *testing.T) {
	state := introspect.NewState("test", "v0")
	g, err := New(Options{Service: "test", Config: &rest.Config{Host: "http://apiserver"}, Scheme: scheme.Scheme,
		Log: zap.NewNop(), State: state, Controllers: []Registration{{Name: "job", Explains: []string{"Job"}}}})
	if err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		got, known := g.explainer(explains{"job", "Job"})(t.Context(), "default", "pi")
		if !known || !strings.Contains(got.Summary, want) {
			t.Errorf("%q, want %q in it", got.Summary, want)
		}
	}
	says("does not lead test.job, and does not know who does")
	state.Campaigning("test.job")
	state.Elected("test.job", "other-1")
	says("does not lead test.job: other-1 does")
	s := &Setup{explains: []string{"Job"},
		explain: func(kind string, e introspect.Explainer) { g.setExplainer(explains{"job", kind}, e) }}
	s.Explain(func(_ context.Context, namespace, name string) (introspect.Explanation, bool) {
		return introspect.Explanation{Summary: namespace + "/" + name + " waits"}, true
	})
	says("default/pi waits")
	g.dropExplainers("job")
	says("does not lead test.job")
}

// If several controllers explain a kind, each is asked.
func TestSeveralExplain(t *testing.T) {
	state := introspect.NewState("test", "v0")
	g, err := New(Options{Service: "test", Config: &rest.Config{Host: "http://apiserver"}, Scheme: scheme.Scheme,
		Log: zap.NewNop(), State: state, Controllers: []Registration{{Name: "claims", Explains: []string{"Pod"}},
			{Name: "job"}, {Name: "disks", Explains: []string{"Pod"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"claims", "disks"} {
		g.setExplainer(explains{name, "Pod"}, func(context.Context, string, string) (introspect.Explanation, bool) {
			return introspect.Explanation{Summary: "waits", Facts: []introspect.Fact{{Reason: name}}}, name == "disks"
		})
	}
	explain := g.severalExplain("Pod", []string{"claims", "disks"})
	if got, known := explain(t.Context(), "default", "web"); !known || got.Summary != "disks waits" ||
		len(got.Facts) != 1 {
		t.Errorf("%+v, %t", got, known)
	}
	g.dropExplainers("claims")
	if got, _ := explain(t.Context(), "default", "web"); got.Summary != "claims does not lead test.claims, and does "+
		"not know who does; disks waits" {
		t.Errorf("%+v", got)
	}
}
