package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/util/wait"
)

// shownTo returns the certificate that the node shows to a new client.
func (n *node) shownTo() (*x509.Certificate, error) {
	n.t.Helper()
	connection, err := tls.Dial("tcp", n.address, &tls.Config{RootCAs: n.pool()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0], nil
}

// A node without a certificate refuses the handshake and says why, and serves as soon as it has one; each new
// client sees the newest.
func TestCertificateOfTheMoment(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	n := newNodeWith(t, zap.New(core))
	n.show(nil)
	if seen, err := n.shownTo(); err == nil {
		t.Fatalf("the node shows %v", seen.SerialNumber)
	}
	told := func(context.Context) (bool, error) {
		all := lines.FilterMessageSnippet("there is no certificate yet").All()
		return len(all) == 1 && strings.Contains(all[0].Message, "127.0.0.1"), nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 90*time.Second, true, told); err != nil {
		t.Errorf("it tells: %v", lines.All())
	}
	for range 2 {
		want := n.serving()
		n.show(want)
		if seen, err := n.shownTo(); err != nil || !bytes.Equal(seen.Raw, want.Certificate[0]) {
			t.Errorf("the node shows another certificate, %v", err)
		}
		if code, _, err := n.get("/pods"); code != http.StatusOK {
			t.Errorf("/pods: %d, %v", code, err)
		}
	}
}

// A client certificate is rejected on a new connection once its authority has been removed, even with a session
// ticket from before; a certificate of the new authority is accepted.
func TestAuthoritiesOfTheMoment(t *testing.T) {
	n := newNode(t)
	other := newAuthority(t)
	certificate := n.client("system:keelson:apiserver")
	config := &tls.Config{RootCAs: n.pool(), Certificates: []tls.Certificate{certificate},
		ClientSessionCache: tls.NewLRUClientSessionCache(4)}
	// ask requests a path on a new connection, and reads the answer to its end, which brings the session ticket.
	ask := func() (resumed bool, code int, err error) {
		transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+n.address+"/pods",
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return false, 0, err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return response.TLS.DidResume, response.StatusCode, err
	}
	if _, code, err := ask(); code != http.StatusOK {
		t.Fatalf("at first: %d, %v", code, err)
	}
	if resumed, code, err := ask(); code != http.StatusOK || !resumed {
		t.Fatalf("again: resumed %v, %d, %v", resumed, code, err)
	}
	n.believe(other)
	if resumed, code, err := ask(); code == http.StatusOK {
		t.Errorf("after the authority has gone: resumed %v, %d, %v", resumed, code, err)
	}
	if code, _, err := n.get("/pods", other.client("system:keelson:apiserver")); code != http.StatusOK {
		t.Errorf("by the new authority: %d, %v", code, err)
	}
}
