package integration

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/conditions"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

// servingRequests are the requests for serving certificates of nodes that are not decided yet.
func (j *joining) servingRequests() []certificatesv1.CertificateSigningRequest {
	j.Helper()
	list, err := j.Client.CertificatesV1().CertificateSigningRequests().List(j.Context(), metav1.ListOptions{
		FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
	if err != nil {
		j.Fatal(err)
	}
	var pending []certificatesv1.CertificateSigningRequest
	for i := range list.Items {
		if len(list.Items[i].Status.Conditions) == 0 {
			pending = append(pending, list.Items[i])
		}
	}
	return pending
}

// awaitRequest waits for a request for the names and addresses, and returns its name.
func (j *joining) awaitRequest(want string) (name string) {
	j.Helper()
	j.Await("a request for "+want, func() scenario.Answer {
		var seen []string
		for _, r := range j.servingRequests() {
			block, _ := pem.Decode(r.Spec.Request)
			asked, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				j.Fatal(err)
			}
			got := fmt.Sprint(asked.DNSNames, asked.IPAddresses)
			if got == want && r.Spec.Username == "system:node:joined" {
				name = r.Name
				return ""
			}
			seen = append(seen, r.Spec.Username+" "+got)
		}
		return scenario.Sawf("%q", seen)
	})
	return name
}

// throughAPI is how the node's API answers a client of the apiserver.
func (j *joining) throughAPI() scenario.Result {
	j.Helper()
	return j.TryKubectl("", "get", "--raw", "/api/v1/nodes/joined/proxy/healthz")
}

// shown returns the certificate that the node shows, to who trusts the mesh's authority and looks for its address.
func (j *joining) shown(m *inprocess.Mesh) (*x509.Certificate, error) {
	j.Helper()
	file, _ := m.Authority()
	authority, err := os.ReadFile(file)
	if err != nil {
		j.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", j.config.Port), &tls.Config{RootCAs: roots})
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0], nil
}

// A node asks for the certificate of its API under its addresses. It is ready before an administrator approves that,
// only that no client reaches its API until then; the apiserver does by the certificate, as it does while the node asks
// for another one that has a new address too. The next agent asks for nothing.
//
// It runs beside no other test with a nodeagent: TestNodeClientCertificateRotation breaks writes of the process off.
func TestNodeServingCertificateRequest(t *testing.T) {
	m := inprocess.New(t, inprocess.Options{Without: []mesh.Daemon{mesh.Scheduler, mesh.NodeAgent}})
	j := newJoining(t, m)
	c := &j.config
	c.NodeIPs, c.BindAddress, c.Port = []string{"127.0.0.1"}, "127.0.0.1", freePort(t)
	c.Certificates.RotateServer = true
	c.ClientCAFile, _ = m.Authority()

	start := time.Now()
	stop := j.run()
	j.awaitLease(start)
	first := j.awaitRequest("[joined] [127.0.0.1]")
	j.Await("a node that is ready", func() scenario.Answer {
		now := conditions.Node.Find(j.node().Status.Conditions, corev1.NodeReady)
		if now.Status != corev1.ConditionTrue {
			return scenario.Sawf("%+v", now)
		}
		return ""
	})
	if r := j.throughAPI(); r.Code == 0 || !strings.Contains(r.Stderr, "tls: internal error") {
		t.Errorf("before there is a certificate: %+v", r)
	}
	j.Kubectl("certificate", "approve", first)
	j.Await("the node's API", func() scenario.Answer {
		if r := j.throughAPI(); r.Stdout != "ok" {
			return scenario.Sawf("%+v", r)
		}
		return ""
	})
	before, err := j.shown(m)
	if err != nil || before.Subject.String() != "CN=system:node:joined,O=system:nodes" {
		t.Fatalf("the node shows %+v, %v", before, err)
	}

	const patch = `{"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"},` +
		`{"type": "Hostname", "address": "joined"}, {"type": "ExternalDNS", "address": "joined.example.org"}]}}`
	if _, err := j.Client.CoreV1().Nodes().Patch(j.Context(), c.NodeName, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	second := j.awaitRequest("[joined joined.example.org] [127.0.0.1]")
	if now, err := j.shown(m); err != nil || !now.Equal(before) {
		t.Errorf("while the request waits the node shows %+v, %v", now, err)
	}
	j.Kubectl("certificate", "approve", second)
	var after *x509.Certificate
	j.Await("a certificate for the new address", func() scenario.Answer {
		if after, err = j.shown(m); err != nil || after.VerifyHostname("joined.example.org") != nil {
			return scenario.Sawf("%+v, %v", after, err)
		}
		return ""
	})
	stop()

	asked, again := j.requests(), time.Now()
	stop = j.run()
	j.awaitLease(again)
	if now, err := j.shown(m); err != nil || !now.Equal(after) {
		t.Errorf("the next agent shows %+v, %v", now, err)
	}
	stop()
	if now := j.requests(); now != asked {
		t.Errorf("the next agent has asked: %d requests, before %d", now, asked)
	}
}

// node is the Node as the API has it.
func (j *joining) node() *corev1.Node {
	j.Helper()
	node, err := j.Client.CoreV1().Nodes().Get(j.Context(), j.config.NodeName, metav1.GetOptions{})
	if err != nil {
		j.Fatal(err)
	}
	return node
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("finding a free port: %v", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
