package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"keelson.dev/test/mesh"
)

// lone is a StatefulSet whose Pod ends only when it is killed. Its processes carry a mark.
const lone = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: web, image: "` + Server + `", args: ["-http=", "-ignore-term"], env: [{name: MARK, value: "MARKED"}]}
`

// ForceDeletedPodStillRunning takes a StatefulSet's Pod from the API while its process runs and does not heed SIGTERM.
// The next Pod of that name comes to the same node at once, and its process begins only when the first one's has ended.
func ForceDeletedPodStillRunning(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	mark := "MARK=" + w.Namespace
	w.KubectlWith(strings.Replace(lone, "MARKED", w.Namespace, 1), "apply", "-f", "-")
	w.awaitStatefulSet(1, 1)
	if n := processesWith(mark); n != 1 {
		t.Fatalf("%d processes carry the mark, want the container's", n)
	}
	before := w.pod("web-0")

	stop, most := make(chan struct{}), 0
	var counting sync.WaitGroup
	counting.Go(func() {
		for look := time.NewTicker(20 * time.Millisecond); ; {
			most = max(most, processesWith(mark))
			select {
			case <-stop:
				look.Stop()
				return
			case <-look.C:
			}
		}
	})
	w.Kubectl("delete", "pod", "web-0", "--grace-period=0", "--force", "--wait=false")
	w.Await("another Pod to run in its place", func() Answer {
		pods := w.Pods("app=web")
		if len(pods) != 1 || pods[0].UID == before.UID || len(pods[0].Status.ContainerStatuses) != 1 ||
			pods[0].Status.ContainerStatuses[0].State.Running == nil {
			return Sawf("%d Pods", len(pods))
		}
		if pods[0].Spec.NodeName != before.Spec.NodeName {
			t.Fatalf("the next Pod is on node %s, the first was on %s", pods[0].Spec.NodeName, before.Spec.NodeName)
		}
		return ""
	})
	close(stop)
	counting.Wait()
	if most != 1 {
		t.Errorf("%d processes of Pods of one name ran at once", most)
	}
}

// processesWith counts the processes of this machine that have a variable in their environment.
func processesWith(variable string) int {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	n := 0
	for _, file := range environments {
		// A process that has gone meanwhile has no environment.
		data, _ := os.ReadFile(file)
		for _, entry := range bytes.Split(data, []byte{0}) {
			if string(entry) == variable {
				n++
				break
			}
		}
	}
	return n
}
