package vm

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

// apart makes a Deployment with a Pod on each of two nodes, and its Service.
const apart = `kubectl create --validate=false -f - <<END
{apiVersion: apps/v1, kind: Deployment, metadata: {name: apart}, spec: {replicas: 2,
  selector: {matchLabels: {app: apart}}, template: {metadata: {labels: {app: apart}}, spec: {
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
    {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: apart}}}]}},
  containers: [{name: c, image: "keelson.dev/hello:1"}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: apart},
  spec: {selector: {app: apart}, ports: [{port: 80, targetPort: 8080}]}}
END`

// joinLine is what keel init prints for the machines that join.
var joinLine = regexp.MustCompile(`keel join \S+ --token \S+ --discovery-token-ca-cert-hash \S+`)

// TestJoin makes one machine a mesh and another one its node, with Pods that reach each other by name, and takes the
// second one off again.
func TestJoin(t *testing.T) {
	long(t)
	network := NewSwitch(t)
	first := New(t, Config{Name: "first", MemoryMiB: 3072, Mesh: true, Switch: network,
		Address: netip.MustParsePrefix("192.168.77.1/24")})
	said := first.Shell(t, "keel init --bind-address 192.168.77.1 --timeout 12m")
	t.Log(said)
	line := joinLine.FindString(said)
	if line == "" {
		t.Fatal("keel init does not say how machines join")
	}
	second := New(t, Config{Name: "second", MemoryMiB: 2048, Mesh: true, Switch: network,
		Address: netip.MustParsePrefix("192.168.77.2/24")})
	refused, err := second.Try(t.Context(), "", "sh", "-c", line[:len(line)-4]+"ffff")
	if err != nil || refused.Code == 0 || !strings.Contains(refused.Output, "the mesh's authority is sha256:") {
		t.Errorf("another hash: %v, %+v", err, refused)
	}
	t.Log(second.Shell(t, line+" --timeout 12m"))
	if !t.Run("Again", func(t *testing.T) { joinAgain(t, second) }) {
		return
	}
	first.kubectl(t, apart)
	first.await(t, `kubectl get pods -l app=apart -o jsonpath='{range .items[*]}{.spec.nodeName} `+
		`{.status.containerStatuses[0].ready} {end}' | tr ' ' '\n' | sort | tr '\n' ' '`, "first second true true ")
	for _, step := range []struct {
		name string
		test func(t *testing.T, first, second *Machine)
	}{
		{"Streams", streamsOfTheWorker}, {"Names", namesAcross}, {"Reset", resetOfTheWorker},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, first, second) }) {
			return
		}
	}
}

// joinAgain changes nothing, and needs no token.
func joinAgain(t *testing.T, second *Machine) {
	before := second.Shell(t, daemons)
	if out := second.Shell(t, "keel join"); strings.Contains(out, "starting") || strings.Contains(out, "writing") {
		t.Errorf("it found something to do:\n%s", out)
	}
	if after := second.Shell(t, daemons); after != before {
		t.Errorf("the processes were\n%s\nand are\n%s", before, after)
	}
	if left := second.result(
		t.Context(),
		"grep -rlE '[a-z0-9]{6}\\.[a-z0-9]{16}$' /var/lib/keelson/nodes/second/*kubeconfig; "+
			"ls /var/lib/keelson/pki",
	); left != "ca.crt" {
		t.Errorf("the worker keeps secrets of the mesh: %s", left)
	}
}

// podOn prints the Pod of the Deployment on a node.
func podOn(node string) string {
	return "$(kubectl get pods -l app=apart -o name --field-selector spec.nodeName=" + node + ")"
}

// streamsOfTheWorker are had once an administrator has approved the certificate that the node asks for.
func streamsOfTheWorker(t *testing.T, first, _ *Machine) {
	const pending = `kubectl get csr --field-selector spec.signerName=kubernetes.io/kubelet-serving -o name`
	first.await(t, pending+` | grep -c certificatesigningrequest`, "1")
	if refused := first.result(t.Context(), withKubeconfig("kubectl logs "+podOn("second"))); !strings.Contains(refused,
		"tls") {
		t.Errorf("before it is approved, logs say %s", refused)
	}
	t.Log(first.kubectl(t, pending+` | xargs kubectl certificate approve`))
	first.await(t, "kubectl exec "+podOn("second")+" -- /bin/testserver hostname | cut -d- -f1", "apart")
	first.await(t, "kubectl logs "+podOn("second")+" >/dev/null && echo shown", "shown")
}

// namesAcross has the Pods of both machines find each other by the Service's name.
func namesAcross(t *testing.T, first, _ *Machine) {
	for _, from := range []string{"first", "second"} {
		for _, to := range []string{"first", "second"} {
			first.await(t, "for i in 1 2 3 4 5 6 7 8; do kubectl exec "+podOn(from)+
				" -- /bin/testserver wget -q -T 20 -O- http://apart.default.svc.cluster.local/hostname; done | "+
				"grep -q \"^$(basename "+podOn(to)+")$\" && echo reached", "reached")
		}
	}
}

// resetOfTheWorker leaves the data and nothing else; the Node goes when a user deletes it.
func resetOfTheWorker(t *testing.T, first, second *Machine) {
	out := second.Shell(t, "keel reset --yes")
	t.Log(out)
	if !strings.Contains(out, "kubectl delete node second") {
		t.Error("it does not say that the Node stays")
	}
	if got := second.result(t.Context(), left); got != "" {
		t.Errorf("it left:\n%s", got)
	}
	first.kubectl(t, "kubectl delete node second")
	first.await(t, "kubectl get nodes -o name", "node/first")
}
