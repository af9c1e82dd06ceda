package scenario

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// reader is a Pod that needs the Secret mine; no Pod needs theirs.
const reader = `apiVersion: v1
kind: Secret
metadata: {name: mine}
stringData: {A: a}
---
apiVersion: v1
kind: Secret
metadata: {name: theirs}
---
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  containers:
  - name: server
    image: ` + Server + `
    envFrom: [{secretRef: {name: mine}}]
`

// NodeAuthorization asks what a nodeagent may do: it sees and changes Pods, and no kind that holds a template for them.
// It reads a Secret for as long as a Pod on it needs that one, and no other.
//
// POD-044
func NodeAuthorization(t *testing.T, m mesh.Mesh) {
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
		own := &authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=" + m.Nodes()[0]}
		for verb, selector := range map[string]*authorizationv1.FieldSelectorAttributes{"get": nil, "list": own,
			"watch": own, "create": nil, "delete": nil} {
			want := kind.want && verb != "get" // single Pods are asked for below
			expectNodeAccess(w, want, m.Nodes()[0], authorizationv1.ResourceAttributes{Verb: verb, Group: kind.group,
				Resource: kind.resource, FieldSelector: selector})
		}
	}
	w.KubectlWith(reader, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/reader", "--timeout=60s")
	node := w.Kubectl("get", "pod", "reader", "-o", "jsonpath={.spec.nodeName}")
	expectNodeAccess(w, true, node, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Name: "reader"})
	expectNodeAccess(w, true, node, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Name: "mine"})
	expectNodeAccess(w, false, node,
		authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Name: "theirs"})
	expectNodeAccess(w, false, node, authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"})
	expectNodeAccess(w, false, node, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"})
	expectNodeAccess(w, false, "elsewhere",
		authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Name: "mine"})
	expectNodeAccess(w, false, "elsewhere",
		authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Name: "reader"})
	w.Kubectl("delete", "pod", "reader", "--grace-period=1")
	w.Await("the end of the node's right to the Secret", func() Answer {
		if nodeIsAllowed(w, node, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Name: "mine"}) {
			return "it may still read it"
		}
		return ""
	})
}

// expectNodeAccess checks the answer to whether the node may do something in the namespace.
func expectNodeAccess(w *World, want bool, node string, what authorizationv1.ResourceAttributes) {
	w.Helper()
	if got := nodeIsAllowed(w, node, what); got != want {
		w.Errorf("node %s may %s %s %s: %v, want %v", node, what.Verb, what.Resource, what.Name, got, want)
	}
}

func nodeIsAllowed(w *World, node string, what authorizationv1.ResourceAttributes) bool {
	w.Helper()
	what.Namespace = w.Namespace
	answer, err := w.Client.AuthorizationV1().SubjectAccessReviews().Create(w.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"},
			ResourceAttributes: &what,
		}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatalf("asking whether a node may %s %s: %v", what.Verb, what.Resource, err)
	}
	return answer.Status.Allowed
}
