package scenario

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// NodeRights asks what a nodeagent may do: it sees and changes Pods, and no kind that holds a template for them.
//
// POD-044
func NodeRights(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	for _, kind := range []struct {
		group, resource string
		want            bool
	}{
		{"", "pods", true},
		{"", "replicationcontrollers", false},
		{"", "podtemplates", false},
		{"apps", "deployments", false},
		{"apps", "replicasets", false},
		{"apps", "statefulsets", false},
		{"apps", "daemonsets", false},
		{"apps", "controllerrevisions", false},
		{"batch", "jobs", false},
		{"batch", "cronjobs", false},
	} {
		for _, verb := range []string{"get", "list", "watch", "create", "delete"} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:node:" + m.Nodes()[0], Groups: []string{"system:nodes", "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.Namespace, Verb: verb, Group: kind.group, Resource: kind.resource},
			}}
			answer, err := w.Client.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("asking whether a node may %s %s: %v", verb, kind.resource, err)
			}
			if answer.Status.Allowed != kind.want {
				t.Errorf("a node may %s %s: %v, want %v", verb, kind.resource, answer.Status.Allowed, kind.want)
			}
		}
	}
}
