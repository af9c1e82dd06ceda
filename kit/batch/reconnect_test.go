package batch

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// An apiserver that takes no batches may be replaced: over a new connection they are tried again.
func TestNewConnection(t *testing.T) {
	var batches atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Path {
			batches.Add(1)
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	server.EnableHTTP2 = true // as an apiserver does: one connection for all requests
	server.StartTLS()
	defer server.Close()
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	connection, err := rest.HTTPClientFor(Over(&rest.Config{Host: server.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: trusted, ServerName: "example.com"},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}}, func(context.Context) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	over := connection.Transport.(transport)
	// Writes wait 2 ms for others, which on a busy machine may come later.
	tryTogether := func() {
		before := batches.Load()
		for range 1000 {
			busy(over)
			for _, got := range burst(t.Context(), over, 3, "a") {
				if got != "200 " {
					t.Errorf("a write: %s", got)
				}
			}
			if batches.Load() != before {
				return
			}
		}
	}
	tryTogether()
	first := batches.Load()
	for range 3 {
		if got := write(t.Context(), over, "w", "a"); got != "200 " {
			t.Error(got)
		}
	}
	if !over.refusing() || first == 0 || batches.Load() != first {
		t.Errorf("%d batches at first, %d then", first, batches.Load())
	}
	server.CloseClientConnections()
	for range 100 {
		if got := write(t.Context(), over, "w", "a"); got != "200 " {
			t.Log(got) // the connection that is cut
		}
		if !over.refusing() {
			break
		}
	}
	if tryTogether(); batches.Load() == first {
		t.Error("no batch over the new connection")
	}
}
