package endpointfeed

import (
	"context"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/introspect"
)

// A slice is explained by what it is kept for; one of another manager is left to that manager.
func TestExplainer(t *testing.T) {
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	slices, err := SlicesOf(store, "me")
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{
		"mine":      {discoveryv1.LabelManagedBy: "me", discoveryv1.LabelServiceName: "web"},
		"late":      {discoveryv1.LabelManagedBy: "me", discoveryv1.LabelServiceName: "gone"},
		"nameless":  {discoveryv1.LabelManagedBy: "me"},
		"another's": {discoveryv1.LabelManagedBy: "you", discoveryv1.LabelServiceName: "web"},
		"nobody's":  {discoveryv1.LabelServiceName: "web"},
	} {
		if err := store.Add(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
			Labels: labels}, Endpoints: []discoveryv1.Endpoint{{},
			{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}}}); err != nil {
			t.Fatal(err)
		}
	}
	facts := []introspect.Fact{{Reason: "NotReady"}}
	tell := func(_ context.Context, namespace, name string) (introspect.Explanation, bool) {
		return introspect.Explanation{Summary: "waits for 1 Pod", Facts: facts}, namespace == "ns" && name == "web"
	}
	explain := slices.Explainer("Service", tell, func(slice *discoveryv1.EndpointSlice) string {
		return slice.Labels[discoveryv1.LabelManagedBy]
	})
	for _, row := range []struct {
		namespace, name, want string
		known                 bool
		facts                 int
	}{
		{"ns", "mine", "lists 2 endpoints, 1 of them ready; of Service web: waits for 1 Pod", true, 1},
		{"ns", "late", "waits for podgc's collector owners to delete it, as Service gone is gone; it lists 2 " +
			"endpoints, 1 of them ready", true, 1},
		{"ns", "nameless", "me", true, 0},
		{"ns", "another's", "you", true, 0},
		{"ns", "nobody's", "", false, 0},
		{"ns", "web", "", false, 0},
		{"other", "mine", "", false, 0},
	} {
		e, known := explain(t.Context(), row.namespace, row.name)
		if e.Summary != row.want || known != row.known || len(e.Facts) != row.facts {
			t.Errorf("%s/%s: %q with %d facts, %t", row.namespace, row.name, e.Summary, len(e.Facts), known)
		}
	}
}
