package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/renameio/v2"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// A worker has the certificates that its agent keeps; keel lists them and makes none of them.
func TestCertificatesOfAWorker(t *testing.T) {
	b := newJoinBed(t)
	b.mustJoin(t)
	const missing = "nodes/vm/agent/pki/kubelet-client-current.pem missing\n" +
		"nodes/vm/agent/pki/kubelet-server-current.pem missing"
	if care := b.needCare(t); care != missing {
		t.Errorf("there need care\n%s", care)
	}
	// As the agent keeps them: a certificate and its key in one file.
	var pair []byte
	for _, part := range []string{".crt", ".key"} {
		content, err := os.ReadFile(b.api.layout.PKI("apiserver" + part))
		must(t, err)
		pair = append(pair, content...)
	}
	dir := filepath.Join(b.layout.Node("vm").Agent(), "pki")
	must(
		t,
		errors.Join(
			os.MkdirAll(dir, 0o750),
			os.WriteFile(filepath.Join(dir, "kubelet-client-current.pem"), pair, 0o600),
		),
	)
	if care := b.needCare(t); care != strings.Split(missing, "\n")[1] {
		t.Errorf("with a client certificate there need care\n%s", care)
	}
	m := b.opened(t)
	if err := Renew(
		t.Context(),
		m,
		Renewal{},
	); err == nil ||
		!strings.Contains(err.Error(), "is of a worker, whose agent renews") {
		t.Errorf("got %v", err)
	}
}

// A worker whose agent's certificate has expired joins again with a token, and keel reads its node with the
// certificate that the agent gets meanwhile, also over an open connection.
func TestAWorkerGetsANewCertificate(t *testing.T) {
	b := newBed(t)
	m := b.mesh()
	m.State = &state.State{Server: "there", Nodes: []state.Node{{Name: "vm"}}}
	names := []plan.Certificate{
		{
			File:  "apiserver",
			User:  "a",
			Hosts: []string{"localhost"},
			Addresses: []netip.Addr{
				netip.MustParseAddr("127.0.0.1"),
			},
		},
		{File: "old", User: "old"},
		{File: "new", User: "new"},
	}
	_, err := pki.Ensure(b.layout, names, time.Now())
	must(t, err)
	pair, err := tls.LoadX509KeyPair(b.layout.PKI("apiserver.crt"), b.layout.PKI("apiserver.key"))
	must(t, err)
	refused := make(chan struct{}, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName == "new" {
			answer(w, r)
			return
		}
		refused <- struct{}{}
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	current := filepath.Join(t.TempDir(), "current.pem")
	take := func(name string) error {
		certificate, err := os.ReadFile(b.layout.PKI(name + ".crt"))
		key, err2 := os.ReadFile(b.layout.PKI(name + ".key"))
		return errors.Join(err, err2, renameio.WriteFile(current, append(certificate, key...), 0o600))
	}
	must(t, take("old"))
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthority: b.layout.PKI("ca.crt")}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificate: current, ClientKey: current}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	must(t, errors.Join(os.MkdirAll(b.layout.Node("vm").Dir, 0o755),
		clientcmd.WriteToFile(*config, b.layout.Node("vm").Kubeconfig())))
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	go func() {
		<-refused
		if err := take("new"); err != nil {
			t.Error(err)
		}
	}()
	if err := m.awaitNode(ctx); err != nil {
		t.Error(err)
	}
}
