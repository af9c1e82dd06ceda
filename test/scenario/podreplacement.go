package scenario

import (
	"strings"
	"testing"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
)

// NodeDrain empties a node as an administrator does. Its Pods are replaced by others, which the scheduler places like
// any new Pod: not where the old ones were.
//
// POD-011 POD-027 SAF-023
func NodeDrain(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	// A label of its own, so that drain leaves the Pods of the scenarios beside it alone.
	app := "drained-" + w.Namespace
	w.KubectlWith(strings.ReplaceAll(web(4, HelloV1, ""), "web", app), "apply", "-f", "-")
	w.AwaitAvailable(app, 4)
	node := w.Pods("app=" + app)[0].Spec.NodeName
	defer w.Kubectl("uncordon", node)
	r := w.TryKubectl("", "drain", node, "--pod-selector=app="+app)
	if r.Code != 0 || !strings.Contains(r.Stdout, "node/"+node+" drained") {
		t.Errorf("drain: status %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.AwaitAvailable(app, 4)
	for _, pod := range w.Pods("app=" + app) {
		if pod.Spec.NodeName == node || strings.Contains(r.Stdout, "pod/"+pod.Name+" evicted") {
			t.Errorf("after the drain of %s Pod %s is on %s:\n%s", node, pod.Name, pod.Spec.NodeName, r.Stdout)
		}
	}
}

// ReplacementOfTerminatingPod deletes the only Pod of a Deployment, which lingers: another one like it runs before it
// is gone.
//
// POD-011 SAF-022 SAF-175
func ReplacementOfTerminatingPod(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(1, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 1)
	old := w.Pods("app=web")[0]
	w.Kubectl("patch", "pod", old.Name, "--type=merge", "-p", `{"metadata":{"finalizers":["test.keelson.dev/hold"]}}`)
	w.Kubectl("delete", "pod", old.Name, "--wait=false")
	w.Await("two Pods, the new one ready", func() Answer {
		pods := w.Pods("app=web")
		for _, pod := range pods {
			if len(pods) == 2 && pod.UID != old.UID && podview.IsActive(&pod) && podview.IsReady(&pod) {
				if pod.Name == old.Name || pod.Spec.Containers[0].Image != HelloV1 ||
					pod.GenerateName != old.GenerateName {
					t.Errorf("Pod %s of image %s replaces %s", pod.Name, pod.Spec.Containers[0].Image, old.Name)
				}
				return ""
			}
		}
		return Sawf("%d Pods", len(pods))
	})
	w.Kubectl("patch", "pod", old.Name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
}
