package scenario

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// CustomResourceOwnership shows a kind that comes and goes among the built-in ones: its objects own, are counted by
// quotas and are scaled, and with its definition go its objects and what they owned.
//
// POD-015 DEP-168
func CustomResourceOwnership(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	group := defineWidgets(w)
	widgets := "widgets." + group
	w.awaitOutput([]string{"   Local ", "   True "}, "get", "apiservice", "v1."+group)
	w.Kubectl("create", "quota", "widgets", "--hard=count/"+widgets+"=5")
	for _, name := range []string{"first", "second"} {
		w.KubectlWith(fmt.Sprintf(widgetManifest, group, name), "create", "-f", "-")
		makeObjectsOwnedBy(w, group, name)
	}
	awaitQuota(w, "count/"+widgets+" 2 5")
	w.KubectlWith(fmt.Sprintf(widgetScaler, group), "create", "-f", "-")
	w.Await("the autoscaler to scale the widget", func() Answer {
		if got := w.Kubectl("get", widgets, "second", "-o", "jsonpath={.spec.replicas}"); got != "3" {
			return Sawf("%s replicas", got)
		}
		return ""
	})
	w.Kubectl("delete", widgets, "first")
	w.awaitGone("configmap", "of-first")
	awaitQuota(w, "count/"+widgets+" 1 5")
	w.Kubectl("get", "configmap", "of-second")
	w.Kubectl("delete", "customresourcedefinition", widgets)
	w.awaitGone("configmap", "of-second")
	w.awaitGone("apiservice", "v1."+group)
}

// NamespaceDeletionWithCustomResources deletes a namespace with objects of a kind that a user has just defined: none
// is left.
//
// POD-015
func NamespaceDeletionWithCustomResources(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	group := defineWidgets(w)
	inside := w.Namespace + "-inside"
	w.Kubectl("create", "namespace", inside)
	w.KubectlWith(fmt.Sprintf(widgetManifest, group, "held"), "create", "-n", inside, "-f", "-")
	w.Kubectl("patch", "widgets."+group, "held", "-n", inside, "--type=merge", "-p",
		`{"metadata":{"finalizers":["test.keelson.dev/hold"]}}`)
	w.Kubectl("delete", "namespace", inside, "--wait=false")
	w.Await("the namespace to say what is left in it", func() Answer {
		const left = `jsonpath={.status.conditions[?(@.type=="NamespaceContentRemaining")].message}`
		want := "Some resources are remaining: widgets." + group + " has 1 resource instances"
		if got := w.Kubectl("get", "namespace", inside, "-o", left); got != want {
			return Sawf("%q", got)
		}
		return ""
	})
	w.Kubectl("patch", "widgets."+group, "held", "-n", inside, "--type=json", "-p",
		`[{"op":"remove","path":"/metadata/finalizers"}]`)
	w.awaitGone("namespace", inside)
	w.Kubectl("create", "namespace", inside)
	w.Cleanup(func() {
		err := w.Client.CoreV1().Namespaces().Delete(context.Background(), inside, metav1.DeleteOptions{})
		if err != nil {
			w.Errorf("deleting the namespace %s: %v", inside, err)
		}
	})
	if left := w.Kubectl("get", "widgets."+group, "-n", inside, "-o", "name"); left != "" {
		t.Errorf("of the namespace that went are left: %s", left)
	}
}

// defineWidgets makes a kind of the test's own until the test ends, and returns its group.
func defineWidgets(w *World) (group string) {
	w.Helper()
	group = w.Namespace + ".example.com"
	w.KubectlWith(fmt.Sprintf(widgetDefinition, group), "create", "-f", "-")
	w.Cleanup(func() {
		err := w.Client.CoreV1().RESTClient().Delete().
			AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "widgets."+group).
			Do(context.Background()).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			w.Errorf("deleting the definition: %v", err)
		}
	})
	awaitEstablished(w, "customresourcedefinition/widgets."+group)
	return group
}

// awaitEstablished waits until the kinds of definitions are served. kubectl wait gives up where it finds no conditions
// yet, which a definition does not have for its first moments.
func awaitEstablished(w *World, definitions ...string) {
	w.Helper()
	w.Await("the definitions to be established", func() Answer {
		return Left(w.TryKubectl("", append([]string{"wait", "--for=condition=Established", "--timeout=10s"},
			definitions...)...).Complaint())
	})
}

// makeObjectsOwnedBy makes a ConfigMap that a widget owns.
func makeObjectsOwnedBy(w *World, group, name string) {
	w.Helper()
	uid := w.Kubectl("get", "widgets."+group, name, "-o", "jsonpath={.metadata.uid}")
	w.KubectlWith(fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: of-%[2]s, ownerReferences: [{apiVersion: %[1]s/v1, kind: Widget, name: %[2]s, uid: %[3]s}]}
`, group, name, uid), "create", "-f", "-")
}

const (
	widgetDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas,
      labelSelectorPath: .status.selector}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer}}}
          status: {type: object, properties: {replicas: {type: integer}, selector: {type: string}}}
`
	widgetManifest = `apiVersion: %s/v1
kind: Widget
metadata: {name: %s}
spec: {replicas: 1}
status: {replicas: 1, selector: app=none}
`
	widgetScaler = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: widget}
spec:
  scaleTargetRef: {apiVersion: %s/v1, kind: Widget, name: second}
  minReplicas: 3
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`
)
