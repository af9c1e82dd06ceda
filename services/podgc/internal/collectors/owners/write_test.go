package owners

import (
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A dependent keeps its own grace period, whatever the policy: this collector never forces a deletion. SAF-157
func TestDeletionsAreGraceful(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		client := fake.NewSimpleMetadataClient(fake.NewTestScheme())
		w := &writer{client: client, log: zap.NewNop()}
		pod := object("pod-uid", ref("a", true))
		pod.Resource, pod.Namespace, pod.ResourceVersion = schema.GroupVersionResource{Version: "v1", Resource: "pods"},
			"default", "7"
		if err := w.apply(t.Context(), pod, Plan{Delete: &policy}); err != nil {
			t.Fatalf("%s: %v", policy, err)
		}
		actions := client.Actions()
		if len(actions) != 1 {
			t.Fatalf("%s: %d requests, want one: %v", policy, len(actions), actions)
		}
		options := actions[0].(clienttesting.DeleteActionImpl).DeleteOptions
		if options.GracePeriodSeconds != nil {
			t.Errorf("%s: a grace period of %d s, want the Pod's own", policy, *options.GracePeriodSeconds)
		}
		if *options.PropagationPolicy != policy || *options.Preconditions.UID != pod.UID ||
			*options.Preconditions.ResourceVersion != "7" {
			t.Errorf("%s: options %+v", policy, options)
		}
	}
}
