package scenario

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// DaemonCrashDuringRollout ends each daemon in turn in the middle of a rollout. Every rollout is completed
// afterwards, and every acknowledged write still exists.
//
// SAF-197
func DaemonCrashDuringRollout(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	const replicas = 4
	w.KubectlWith(web(replicas, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", replicas)
	images := []string{HelloV2, HelloV1}
	for i, d := range mesh.Daemons {
		w.Logf("ending %s during a rollout", d)
		image := images[i%2]
		acknowledged := fmt.Sprintf("acknowledged-%d", i)
		w.Kubectl("set", "image", "deployment/web", "web="+image)
		w.Kubectl("create", "configmap", acknowledged, "--from-literal=daemon="+string(d))
		m.Kill(t, d)
		m.Start(t, d)
		w.AwaitAvailable("web", replicas)
		expectImages(w, image)
		w.Await("what was acknowledged before "+string(d)+" ended", func() Answer {
			got, err := w.Client.CoreV1().ConfigMaps(w.Namespace).Get(w.Context(), acknowledged, metav1.GetOptions{})
			if err != nil {
				return Saw(err.Error())
			}
			if got.Data["daemon"] != string(d) {
				return Sawf("data %v", got.Data)
			}
			return ""
		})
	}
}
