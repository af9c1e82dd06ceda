package nodecertificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// machine is a machine on which an agent starts.
type machine struct {
	*testing.T
	Client
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	return &machine{t, Client{Settings: Settings{Dir: filepath.Join(dir, "pki")}, Node: "n",
		Kubeconfig: filepath.Join(dir, "kubeconfig"), Log: zap.NewNop()}}
}

// write writes a kubeconfig for a server that does not exist.
func (m *machine) write(file string, user *clientcmdapi.AuthInfo) {
	m.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", TLSServerName: "mesh"}
	config.AuthInfos["u"] = user
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		m.Fatal(err)
	}
}

// The agent uses the kubeconfig's user unchanged if that suffices, and needs no bootstrap kubeconfig then.
func TestConnectAsGiven(t *testing.T) {
	mesh := newAuthority(t)
	certificate, key := mesh.sign(t, lasting())
	other, otherKey := mesh.sign(t, named(lasting(), "ann"))
	for name, user := range map[string]*clientcmdapi.AuthInfo{
		"a certificate":             {ClientCertificateData: certificate, ClientKeyData: key},
		"a token":                   {Token: "secret"},
		"a certificate of somebody": {ClientCertificateData: other, ClientKeyData: otherKey},
	} {
		m := newMachine(t)
		m.Bootstrap = "/no/such/file"
		m.Rotate = name != "a certificate"
		m.write(m.Kubeconfig, user)
		config, err := m.Connect(t.Context())
		if err != nil || config.Host != "https://127.0.0.1:1" || config.BearerToken != user.Token ||
			!bytes.Equal(config.CertData, user.ClientCertificateData) {
			t.Errorf("%s: %+v, %v", name, config, err)
		}
	}
}

// The kubeconfig's certificate is renewed in the folder, where the agent reads the later ones.
func TestConnectSeeds(t *testing.T) {
	mesh := newAuthority(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := newMachine(t)
	m.Rotate = true
	certificate, key := mesh.sign(t, leaf("n", time.Now().Add(-time.Minute), time.Now().Add(time.Hour)))
	m.write(m.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	config, err := m.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(m.Dir, clientFile)
	if config.CertFile != file || config.KeyFile != file || len(config.CertData) > 0 || len(config.KeyData) > 0 ||
		config.ServerName != "mesh" {
		t.Errorf("%+v", config)
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, certificate) {
		t.Errorf("the folder holds %q, %v", data, err)
	}
	// The next agent finds a newer one there, and the kubeconfig's has expired meanwhile.
	younger, youngerKey := mesh.sign(t, lastingFrom(time.Now()))
	if _, err := openTest(t, m.Dir).Update(younger, youngerKey); err != nil {
		t.Fatal(err)
	}
	certificate, key = mesh.sign(t, leaf("n", time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)))
	m.write(m.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	if config, err = m.Connect(ctx); err != nil || config.CertFile != file {
		t.Errorf("%+v, %v", config, err)
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, younger) {
		t.Errorf("the folder holds %q, %v", data, err)
	}
}

// An impossible setting is refused with one sentence that names the flag.
func TestConnectRefuses(t *testing.T) {
	for _, row := range []struct {
		name, kubeconfig, bootstrap string
		want                        string
	}{
		{"nothing to ask by", "", "", "--kubeconfig: "},
		{"no bootstrap file", "", "/no/such/file", "--bootstrap-kubeconfig: /no/such/file is not there"},
		{"a damaged kubeconfig", "apiVersion: [", "/no/such/file", "--kubeconfig: "},
		{"one without a context", "apiVersion: v1\nkind: Config\n", "/no/such/file", "--kubeconfig: "},
		{"one without a user", "apiVersion: v1\nkind: Config\ncurrent-context: x\n" +
			"clusters: [{name: c, cluster: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n",
			"/no/such/file", "--kubeconfig: "},
	} {
		m := newMachine(t)
		m.Bootstrap, m.Rotate = row.bootstrap, true
		if row.kubeconfig != "" {
			if err := os.WriteFile(m.Kubeconfig, []byte(row.kubeconfig), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := m.Connect(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// An agent that is ended while it waits for its first certificate ends, and leaves no kubeconfig.
func TestConnectEnds(t *testing.T) {
	m := newMachine(t)
	m.Bootstrap = filepath.Join(t.TempDir(), "bootstrap")
	m.write(m.Bootstrap, &clientcmdapi.AuthInfo{Token: "secret"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Connect(ctx); err == nil {
		t.Error("it has a connection")
	}
	if _, err := os.Stat(m.Kubeconfig); err == nil {
		t.Error("there is a kubeconfig")
	}
}

// lastingFrom is the certificate of node n that begins then.
func lastingFrom(from time.Time) *x509.Certificate { return leaf("n", from, from.Add(time.Hour)) }
