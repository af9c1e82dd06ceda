package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// greedy is a Pod that may keep little and has long to end.
const greedy = `apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  terminationGracePeriodSeconds: 300
  containers:
  - name: main
    image: ` + Server + `
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes: [{name: scratch, emptyDir: {sizeLimit: 1Mi}}]
`

// EmptyDirSizeLimitEviction fills a volume beyond its sizeLimit: the Pod fails, regardless of its restart policy
// and grace period.
func EmptyDirSizeLimitEviction(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(greedy, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/greedy", "--timeout=60s")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Kubectl("cp", file, w.Namespace+"/greedy:/scratch/file")
	w.Await("the Pod to be evicted", func() Answer {
		pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), "greedy", metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		s := pod.Status
		if s.Phase != corev1.PodFailed || s.Reason != "Evicted" || !strings.Contains(s.Message, `"scratch"`) {
			return Saw(string(s.Phase) + " " + s.Reason + " " + s.Message)
		}
		return ""
	})
	if events := w.Kubectl("get", "events", "--field-selector", "reason=Evicted", "-o", "name"); events == "" {
		t.Error("no event tells of the eviction")
	}
}
