package client_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

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
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "v1 Endpoints is deprecated"`)
		_, _ = w.Write([]byte(`{"kind":"EndpointsList","apiVersion":"v1"}`))
	}))
	defer server.Close()
	lines := 0
	klog.SetLogger(funcr.New(func(string, string) { lines++ }, funcr.Options{}))
	defer klog.ClearLogger()
	insecure := rest.TLSClientConfig{Insecure: true}
	for daemon, want := range map[bool]int{false: 1, true: 0} {
		config := &rest.Config{Host: server.URL, TLSClientConfig: insecure}
		if daemon {
			config = client.ForDaemon(config, "test")
		}
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		lines = 0
		if _, err := clients.CoreV1().Endpoints("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if lines != want {
			t.Errorf("a daemon: %v; %d lines are logged, want %d", daemon, lines, want)
		}
	}
}
