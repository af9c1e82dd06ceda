package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// dongle is a resource that no node knows by itself.
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

// ExtendedResources gives a node a resource as an administrator does, through its status: Pods can use it until it is
// taken away again, whatever the node reports of itself meanwhile.
func ExtendedResources(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	node := m.Nodes()[0]
	patch := func(amount string) {
		body := `{"status":{"capacity":{"` + dongle + `":` + amount + `}}}`
		w.Kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", body)
	}
	allocatable := func(want string) {
		w.Await("the node to offer "+want+" dongles", func() string {
			got, err := w.Client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			amount, has := got.Status.Allocatable[dongle]
			if text := amount.String(); has != (want != "no") || has && text != want {
				return "it offers " + text
			}
			return ""
		})
	}
	defer patch("null")
	patch(`"2"`)
	allocatable("2")
	w.KubectlWith(plugged, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/plugged", "--timeout=60s")
	w.KubectlWith(strings.ReplaceAll(plugged, "plugged", "second"), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/second", "--timeout=60s")
	for _, pod := range w.Pods("") {
		if pod.Spec.NodeName != node || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("Pod %s is %s on %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
	patch("null")
	allocatable("no")
}
