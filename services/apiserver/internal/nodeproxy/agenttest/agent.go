// Package agenttest is a nodeagent for tests: it listens with TLS on loopback, lets in only who shows a certificate of
// its authority, and answers for containers that it does not have.
package agenttest

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/nodeproxy"
)

// Agent is a running nodeagent.
type Agent struct {
	// Config is how an apiserver reaches it.
	Config nodeproxy.Config
	// Metrics answers for /metrics/resource; nil: there is no such page.
	Metrics http.HandlerFunc

	ca     *authority
	server *httptest.Server
	follow chan string
}

// Start runs an agent until the test ends.
func Start(t testing.TB) *Agent {
	t.Helper()
	dir := t.TempDir()
	ca := newAuthority(t)
	a := &Agent{ca: ca, Config: nodeproxy.Config{
		ClientCertificate:    filepath.Join(dir, "client.crt"),
		ClientKey:            filepath.Join(dir, "client.key"),
		CertificateAuthority: filepath.Join(dir, "ca.crt"),
	}}
	ca.writeCertificate(t, a.Config.CertificateAuthority)
	ca.issueFiles(t, "system:keelson:apiserver", a.Config.ClientCertificate, a.Config.ClientKey)
	a.listen(t, ca)
	return a
}

// Another runs one more agent, which an apiserver reaches in the same way.
func (a *Agent) Another(t testing.TB) *Agent {
	t.Helper()
	other := &Agent{ca: a.ca, Config: a.Config}
	other.listen(t, a.ca)
	return other
}

// Impostor runs one more agent, which lets in the same apiservers and shows them a certificate of another authority.
func (a *Agent) Impostor(t testing.TB) *Agent {
	t.Helper()
	other := &Agent{ca: a.ca, Config: a.Config}
	other.listen(t, newAuthority(t))
	return other
}

// listen shows a certificate that the authority issued.
func (a *Agent) listen(t testing.TB, shown *authority) {
	t.Helper()
	a.follow = make(chan string)
	a.server = httptest.NewUnstartedServer(a)
	a.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{shown.issue(t, "system:node:node-1", net.IPv4(127, 0, 0, 1))},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    a.ca.pool(),
	}
	a.server.StartTLS()
	t.Cleanup(a.server.Close)
}

// Node is the Node object that leads to the agent.
func (a *Agent) Node(name string) *corev1.Node {
	address := a.server.Listener.Addr().(*net.TCPAddr)
	node := &corev1.Node{}
	node.Name = name
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
	return node
}

// Append adds a line to the log of every container that is being followed; it blocks until a client reads it.
func (a *Agent) Append(line string) { a.follow <- line }

// ServeHTTP answers with what it was asked: a log of one line that is the request's path and query, and streams that
// answer on standard output.
func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != "system:keelson:apiserver" {
		http.Error(w, name+" may not do this", http.StatusForbidden)
		return
	}
	if r.URL.Path == "/metrics/resource" && a.Metrics != nil {
		a.Metrics(w, r)
		return
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch kind {
	case "containerLogs":
		a.serveLog(w, r)
	case "exec", "attach":
		serveProcess(w, r)
	case "portForward":
		servePorts(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (a *Agent) serveLog(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/gone") {
		http.Error(w, "container gone is waiting to start", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintln(w, r.URL.RequestURI())
	if r.URL.Query().Get("follow") != "true" {
		return
	}
	for {
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case line := <-a.follow:
			fmt.Fprintln(w, line)
		case <-r.Context().Done():
			return
		}
	}
}
