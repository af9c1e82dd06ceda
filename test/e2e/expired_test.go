package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// TestExpiredCertificates carries out the runbook of docs/reference/mesh-certificates.md on a mesh whose operator and
// whose apiserver have certificates that have expired: while it runs, and while the apiserver does not.
func TestExpiredCertificates(t *testing.T) {
	m := processes.New(t, 0)
	expectCare(t, m)
	ask(t, m) // it still answers the requests that it will refuse
	expire(t, m, "admin")
	expire(t, m, "apiserver")
	// The daemons are as they would be after two years: started since, and with no client that could ask them.
	for _, daemon := range []mesh.Daemon{mesh.APIServer, mesh.WorkloadControllers} {
		m.Kill(t, daemon)
	}
	expectCare(t, m, "kubeconfig/admin.kubeconfig", "pki/admin.crt", "pki/apiserver.crt")
	if out, err := m.Keel(t.Context(), "certs", "renew"); err != nil {
		t.Fatalf("renewing while the apiserver is away: %v\n%s", err, out)
	}
	expectCare(t, m)
	m.Start(t, mesh.APIServer)
	ask(t, m)
	// While it runs, what runs by one of them is restarted, and nothing else.
	expire(t, m, "admin")
	expire(t, m, "apiserver")
	before := m.Of(t, mesh.APIServer)[0].PID
	scheduler := m.Of(t, mesh.Scheduler)[0].PID
	if err := asked(t.Context(), m); err == nil {
		t.Error("the apiserver answers to a certificate that has expired")
	}
	if out, err := m.Keel(t.Context(), "certs", "renew", "admin", "apiserver", "--new-key"); err != nil {
		t.Fatalf("renewing while it runs: %v\n%s", err, out)
	}
	if after := m.Of(t, mesh.APIServer)[0].PID; after == before {
		t.Error("the apiserver was not started anew")
	}
	if after := m.Of(t, mesh.Scheduler)[0].PID; after != scheduler {
		t.Error("the scheduler was started anew")
	}
	expectCare(t, m)
	ask(t, m)
}

// expectCare has keel certs list name these files as those that need care.
func expectCare(t *testing.T, m *processes.Mesh, want ...string) {
	t.Helper()
	out, err := m.Keel(t.Context(), "certs", "list", "-o", "json")
	if (err != nil) != (len(want) > 0) {
		t.Errorf("keel certs list: %v\n%s", err, out)
	}
	var list struct {
		Certificates []struct{ File, State string }
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&list); err != nil {
		t.Fatalf("reading %s: %v", out, err)
	}
	var got []string
	for _, c := range list.Certificates {
		if c.State != "good" {
			got = append(got, c.File)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) || len(list.Certificates) != 12 {
		t.Errorf("of %d there need care %v, want %v", len(list.Certificates), got, want)
	}
}

// ask waits until the apiserver answers the operator, by the kubeconfig that there is now.
func ask(t *testing.T, m *processes.Mesh) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for {
		err := asked(ctx, m)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the apiserver does not answer: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func asked(ctx context.Context, m *processes.Mesh) error {
	config, err := clientcmd.BuildConfigFromFlags("", m.Kubeconfig())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	return err
}

// expire signs a certificate again as one that has ended an hour ago, and puts it into the kubeconfig of its user.
func expire(t *testing.T, m *processes.Mesh, name string) {
	t.Helper()
	file := func(name string) string { return filepath.Join(m.DataDir, "pki", name) }
	authority, err := tls.LoadX509KeyPair(file("ca.crt"), file("ca.key"))
	pair, err2 := tls.LoadX509KeyPair(file(name+".crt"), file(name+".key"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	template := *pair.Leaf
	template.NotBefore, template.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &template, authority.Leaf, pair.Leaf.PublicKey,
		authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	expired := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(file(name+".crt"), expired, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(m.DataDir, "kubeconfig", name+".kubeconfig")
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		for _, user := range config.AuthInfos {
			user.ClientCertificateData = expired
		}
		err = clientcmd.WriteToFile(*config, path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
