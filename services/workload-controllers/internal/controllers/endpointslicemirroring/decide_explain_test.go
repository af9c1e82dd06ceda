package endpointslicemirroring

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is told is what is done, and why nothing is.
func TestAccount(t *testing.T) {
	full := func() *corev1.Endpoints { return endpoints(subset(1, "10.0.0.1 10.0.0.2", "10.0.0.3")) }
	with := func(change func(*Input)) Input {
		in := settled(full())
		change(&in)
		return in
	}
	selecting := service.DeepCopy()
	selecting.Spec.Selector = map[string]string{"app": "db"}
	for want, in := range map[string]Input{
		"in its next pass creates 1 EndpointSlice":              {Endpoints: full(), Service: service, MaxEndpoints: 3},
		"waits for nothing: 1 EndpointSlice mirror 3 endpoints": settled(full()),
		"NotMirrored: waits for 1 of the 3 addresses to be mirrored: at most 2": with(func(in *Input) {
			in.MaxEndpoints = 2
		}),
		"NoService: waits for a Service to mirror them for": with(func(in *Input) { in.Service = nil }),
		"in its next pass deletes 1 EndpointSlice":          with(func(in *Input) { in.Service = selecting }),
		"not mirrored, since their Service selects Pods": with(func(in *Input) {
			in.Service, in.Slices = selecting, nil
		}),
		"not mirrored, since their label": with(func(in *Input) {
			in.Endpoints.Labels[discoveryv1.LabelSkipMirror], in.Slices = "true", nil
		}),
		"not mirrored, since they serve as a lock": with(func(in *Input) {
			in.Endpoints.Annotations[leaderAnnotation], in.Slices = "", nil
		}),
		"not mirrored, since they are being deleted": with(func(in *Input) {
			in.Endpoints.DeletionTimestamp, in.Slices = &metav1.Time{}, nil
		}),
	} {
		e := account(in, Decide(in)).Explanation()
		said := e.Summary
		for _, fact := range e.Facts {
			said += "\n" + fact.Reason + ": " + fact.Message
		}
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}
