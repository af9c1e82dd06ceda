package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/mesh/simnode"
	"keelson.dev/test/scenario"
)

// wanted are the objects that are requested on two nodes with 4 CPUs each.
const wanted = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "2500m"}}}]}
`

const bigNode = `
apiVersion: v1
kind: Node
metadata: {name: big}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
`

// TestSimulate asks keel what would fit, on the live mesh and on a snapshot of it, and then sees that it is so: two of
// three Pods get a node, and keel explains what would help the third.
func TestSimulate(t *testing.T) {
	m := processes.Shared(t, 0)
	m.Restart(t, mesh.PodGC, "--node-monitor-grace-period=24h", "--node-startup-grace-period=24h")
	w := bare(t, m).World
	for _, name := range []string{"one", "two"} {
		if err := simnode.Register(t.Context(), w.Client, name); err != nil {
			t.Fatal(err)
		}
	}
	w.Await("the nodes to take Pods", func() scenario.Answer {
		nodes, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		for _, n := range nodes.Items {
			if len(n.Spec.Taints) > 0 {
				return scenario.Sawf("%s is tainted", n.Name)
			}
		}
		return ""
	})
	dir := t.TempDir()
	snapshot, manifest, node := filepath.Join(dir, "snapshot.json"), filepath.Join(dir, "web.yaml"),
		filepath.Join(dir, "big.yaml")
	for file, content := range map[string]string{manifest: wanted, node: bigNode} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want string, args ...string) {
		t.Helper()
		said, err := m.Keel(t.Context(), args...)
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("keel %s: %v, it says\n%s\nwant %q", strings.Join(args, " "), err, said, want)
		}
	}
	says("objects saved to "+snapshot, "simulate", "--save", snapshot)
	for _, of := range [][]string{nil, {"--snapshot", snapshot}} {
		asks := append([]string{"simulate", "-n", w.Namespace, "-f", manifest}, of...)
		says("2 of 3 Pods get a node, of 2 nodes", asks...)
		says("would fit: 1 less cpu", asks...)
		says("1 of 3 Pods get a node, of 1 nodes", append(asks, "--without-node", "one")...)
		says("3 of 3 Pods get a node, of 4 nodes", append(asks, "--add-node", node+"=2")...)
	}
	if made := w.Kubectl("get", "deployments,pods", "--output=name"); strings.TrimSpace(made) != "" {
		t.Errorf("a simulation has made %s", made)
	}
	w.KubectlWith(wanted, "apply", "-f", "-")
	refused := ""
	w.Await("two Pods to have a node and one to have none", func() scenario.Answer {
		bound := 0
		pods := w.Pods("app=web")
		for _, p := range pods {
			if p.Spec.NodeName != "" {
				bound++
				continue
			}
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					refused = p.Name
				}
			}
		}
		if len(pods) != 3 || bound != 2 || refused == "" {
			return "not yet"
		}
		return ""
	})
	says("WouldFit: 1 less cpu: the Pod fits on one, two", "explain", "-n", w.Namespace, "pod", refused)
	says("Nodes: 2 of 2: NodeResourcesFit: Insufficient cpu (one, two)", "explain", "-n", w.Namespace, "pod", refused)
	says("2 of 2 Pods get a node, of 2 nodes", "simulate", "--add-node", node, "--without-node", "two")
}
