package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// dongle is a resource that no node reports.
const dongle = "example.com/dongle"

// plugged is a Pod that takes one of two dongles.
const plugged = `apiVersion: v1
kind: Pod
metadata: {name: plugged}
spec:
  containers:
  - name: main
    image: ` + Server + `
    resources: {limits: {` + dongle + `: 1}}
`

// ExtendedResources gives a node a resource as an administrator does, through its status: Pods can use it until it
// is removed again, regardless of the node's own reports meanwhile.
func ExtendedResources(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	node := m.Nodes()[0]
	defer offerDongles(w, node, "null")
	offerDongles(w, node, `"2"`)
	w.KubectlWith(plugged, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/plugged", "--timeout=60s")
	w.KubectlWith(strings.ReplaceAll(plugged, "plugged", "second"), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/second", "--timeout=60s")
	for _, pod := range w.Pods("") {
		if pod.Spec.NodeName != node || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("Pod %s is %s on %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
}
