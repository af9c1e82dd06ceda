package gather

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Watches share a connection of their own; all else goes over another, which is not paced.
func TestWatchesHaveTheirConnection(t *testing.T) {
	from := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		from <- r.RemoteAddr
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s comes without the token", r.URL)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config, err := Watches(&rest.Config{Host: server.URL, BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(query string) string {
		response, err := client.Get(server.URL + "/api/v1/pods" + query)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return <-from
	}
	list, watch := ask(""), ask("?allowWatchBookmarks=true&watch=true")
	if watch == list || ask("?watch=true") != watch || ask("?allowWatchBookmarks=true") != list {
		t.Error("watches and other requests are mixed")
	}
}

// A connection that is dialled in another way still is, and one that cannot be dialled says why.
func TestDial(t *testing.T) {
	refused := errors.New("refused")
	config, err := Watches(&rest.Config{Host: "http://nowhere", Dial: func(context.Context, string,
		string) (net.Conn, error) {
		return nil, refused
	}}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"", "?watch=true"} {
		if _, err := client.Get("http://nowhere/api/v1/pods" + query); !errors.Is(err, refused) {
			t.Errorf("%q: %v", query, err)
		}
	}
	if _, err := Watches(&rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/none"}},
		time.Millisecond); err == nil {
		t.Error("a bundle that is not there is no error")
	}
}
