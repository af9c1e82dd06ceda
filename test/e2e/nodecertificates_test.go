package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestNodeCertificateBootstrap has a node that runs a Pod forget its certificates: by a token it gets a client
// certificate, and under the certificate that it asks for as itself, and that an administrator approves, people see
// what its containers say and enter them.
func TestNodeCertificateBootstrap(t *testing.T) {
	m := processes.New(t, 1)
	w := scenario.In(t, m)
	w.KubectlWith("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {terminationGracePeriodSeconds: 1, "+
		"containers: [{name: main, image: "+scenario.Server+", command: [sh, -c, 'echo hello; sleep 1000']}]}}",
		"create", "-f", "-")
	w.Kubectl("wait", "pod", "web", "--for=condition=Ready", "--timeout=60s")
	before := w.Kubectl("get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].containerID}")

	scenario.LetNodesJoin(w)
	dir := t.TempDir()
	bootstrap, pki := filepath.Join(dir, "bootstrap"), filepath.Join(dir, "pki")
	scenario.WriteBootstrap(w, bootstrap)
	m.Restart(t, mesh.NodeAgent, "--kubeconfig="+filepath.Join(dir, "kubeconfig"), "--bootstrap-kubeconfig="+bootstrap,
		"--rotate-certificates", "--cert-dir="+pki, "--rotate-server-certificates", "--tls-cert-file=",
		"--tls-private-key-file=")
	var request string
	w.Await("the node's request", func() scenario.Answer {
		list, err := w.Client.CertificatesV1().CertificateSigningRequests().List(w.Context(), metav1.ListOptions{
			FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		if len(list.Items) == 0 {
			return scenario.Saw("")
		}
		request = list.Items[0].Name
		if by, want := list.Items[0].Spec.Username, "system:node:"+m.Nodes()[0]; by != want {
			t.Errorf("it is of %q, want %q", by, want)
		}
		return ""
	})
	if r := w.TryKubectl("", "logs", "web"); r.Code == 0 || !strings.Contains(r.Stderr, "tls: internal error") {
		t.Errorf("before the node has a certificate kubectl logs says %+v", r)
	}
	w.Kubectl("certificate", "approve", request)
	w.Await("the logs", func() scenario.Answer {
		if r := w.TryKubectl("", "logs", "web"); r.Stdout != "hello\n" {
			return scenario.Sawf("%+v", r)
		}
		return ""
	})
	if got := w.Kubectl("exec", "web", "--", "echo", "inside"); got != "inside\n" {
		t.Errorf("exec prints %q", got)
	}
	if after := w.Kubectl("get", "pod", "web", "-o",
		"jsonpath={.status.containerStatuses[0].containerID}"); after != before {
		t.Errorf("the container is another one: %s, before %s", after, before)
	}
	for _, name := range []string{"kubelet-client-current.pem", "kubelet-server-current.pem"} {
		info, err := os.Stat(filepath.Join(pki, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
