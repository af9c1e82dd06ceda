package scales

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// serve answers by path; what is not there was not found.
func serve(t *testing.T, answers map[string]any) *rest.Config {
	t.Helper()
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		switch {
		case !found:
			http.NotFound(w, r)
			return
		case answer == nil:
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(listening.Close)
	return &rest.Config{Host: listening.URL}
}

// What has gone is told from what has no scale, and both from a server that does not answer.
func TestOfKind(t *testing.T) {
	const group, objects = "/apis/example.dev/v1", "/apis/example.dev/v1/namespaces/ns/"
	config := serve(t, map[string]any{
		group: &metav1.APIResourceList{GroupVersion: "example.dev/v1", APIResources: []metav1.APIResource{
			{Name: "fleets", Kind: "Fleet", Namespaced: true},
			{Name: "fleets/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true},
			{Name: "stones", Kind: "Stone", Namespaced: true}}},
		objects + "fleets/web/scale": &autoscalingv1.Scale{
			TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "1"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: 4}},
		objects + "fleets/broken/scale": nil,
	})
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.dev", Version: "v1"}})
	for _, kind := range []string{"Fleet", "Stone"} {
		mapper.Add(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	c, err := Connect(config, mapper)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		kind, name string
		want       func(error) bool
	}{
		{"Fleet", "web", func(err error) bool { return err == nil }},
		{"Fleet", "gone", apierrors.IsNotFound},
		{"Fleet", "broken", apierrors.IsServiceUnavailable},
		{"Stone", "web", func(err error) bool { return errors.Is(err, ErrNone) }},
		{"Ghost", "web", meta.IsNoMatchError},
	} {
		kind := schema.GroupKind{Group: "example.dev", Kind: row.kind}
		found, err := c.OfKind(t.Context(), kind, "ns", row.name)
		if !row.want(err) {
			t.Errorf("%s %s: %v", row.kind, row.name, err)
		}
		if err == nil && (found.Scale.Spec.Replicas != 4 || found.Scale.UID != "1" ||
			found.Resource.String() != "fleets.example.dev") {
			t.Errorf("%s %s: found %+v", row.kind, row.name, found)
		}
	}
}
