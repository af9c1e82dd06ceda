package scenario

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"keelson.dev/test/mesh"
)

const (
	fleetVersion = "fleets.example.dev/v1"
	fleetUID     = "0f1e2d3c-0000-4000-8000-000000000001"
	// fleetPod is a Pod of the Fleet web.
	fleetPod = `---
apiVersion: v1
kind: Pod
metadata:
  name: web-%d
  labels: {app: web}
  ownerReferences: [{apiVersion: ` + fleetVersion + `, kind: Fleet, name: web, uid: ` + fleetUID + `, controller: true}]
spec: {containers: [{name: web, image: "` + HelloV1 + `"}]}
`
	fleetBudget = `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
`
)

// sizeFleet has the API server from elsewhere say how many Pods its Fleet web is to have.
func (a *adapter) sizeFleet(replicas int) {
	path := fleetVersion + "/namespaces/" + a.w.Namespace + "/fleets/web"
	metadata := map[string]any{"name": "web", "namespace": a.w.Namespace, "uid": fleetUID}
	a.put(path, map[string]any{"apiVersion": fleetVersion, "kind": "Fleet", "metadata": metadata})
	a.put(path+"/scale", map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata,
		"spec": map[string]any{"replicas": replicas}})
}

// DisruptionBudgetForCustomResource holds evictions of Pods whose controller is of a kind from elsewhere to a budget
// that depends on how many Pods there are to be: the scale of that kind says so.
//
// SAF-032
func DisruptionBudgetForCustomResource(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	a := startAdapter(w)
	a.sizeFleet(4)
	a.put(fleetVersion, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": fleetVersion,
		"resources": []any{
			map[string]any{"name": "fleets", "namespaced": true, "kind": "Fleet", "verbs": []string{"get"}},
			map[string]any{"name": "fleets/scale", "namespaced": true, "kind": "Scale", "group": "autoscaling",
				"version": "v1", "verbs": []string{"get"}},
		}})
	a.enter(fleetVersion)
	w.awaitOutput([]string{"fleets", fleetVersion}, "api-resources")
	manifest := fleetBudget
	for i := range 3 {
		manifest += fmt.Sprintf(fleetPod, i)
	}
	w.KubectlWith(manifest, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod", "-l", "app=web")
	w.awaitOutput([]string{"4 3 3 0"}, "get", "pdb", "web", "-o", budgetCounts)
	if err := evictPod(w, &w.Pods("app=web")[0]); !apierrors.IsTooManyRequests(err) {
		t.Errorf("evicting one of 3 Pods of 4: %v, want 429", err)
	}

	// A budget is counted again when its Pods change, and each minute: no event reports changes of other kinds'
	// scales.
	a.sizeFleet(3)
	w.Kubectl("label", "pod", "web-2", "touched=yes")
	w.awaitOutput([]string{"3 2 3 1"}, "get", "pdb", "web", "-o", budgetCounts)
	if err := evictPod(w, &w.Pods("app=web")[0]); err != nil {
		t.Errorf("evicting one of 3 Pods of 3: %v", err)
	}
}

// budgetCounts prints how many Pods a budget expects, how many of them must be healthy and are, and how many may go.
const budgetCounts = "jsonpath={.status.expectedPods} {.status.desiredHealthy} {.status.currentHealthy} " +
	"{.status.disruptionsAllowed}"
