package client_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"keelson.dev/kit/client"
)

// The server is not asked to compress what it sends.
func TestDaemonsAskForNothingCompressed(t *testing.T) {
	var accepts []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		accepts = append(accepts, r.Header.Get("Accept-Encoding"))
	}))
	defer server.Close()
	connection, err := rest.HTTPClientFor(client.ForDaemon(&rest.Config{Host: server.URL,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "test"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := connection.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if !slices.Equal(accepts, []string{""}) {
		t.Errorf("encodings %q are accepted, want none of one request", accepts)
	}
}

// What the API warns of is no line of a daemon's log.
func TestDaemonsTellOfNoWarnings(t *testing.T) {
	if got := client.ForDaemon(&rest.Config{}, "test").WarningHandler; got != (rest.NoWarnings{}) {
		t.Errorf("warnings go to %T", got)
	}
}
