package httpproxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestCheckAddress(t *testing.T) {
	for address, allowed := range map[string]bool{
		"10.0.0.1:80": true, "[fd00::1]:80": true, "127.0.0.1:80": false, "127.9.9.9:80": false, "[::1]:80": false,
		"169.254.169.254:80": false, "[fe80::1]:80": false, "[fe80::1%eth0]:80": false, "0.0.0.0:80": false,
		"[::]:80": false, "224.0.0.1:80": false, "239.1.1.1:80": false, "[ff02::1]:80": false,
		"[::ffff:127.0.0.1]:80": false, "[::ffff:169.254.169.254]:80": false, "[::ffff:10.0.0.1]:80": true,
		"localhost:80": false,
	} {
		if err := CheckAddress(address); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A name is looked at by what it stands for.
func TestTransportStaysOutside(t *testing.T) {
	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+":"+port, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := NewTransport().RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || reached || !strings.Contains(err.Error(), "of the apiserver's own machine") {
			t.Errorf("%s: %v, reached: %t", host, err, reached)
		}
	}
}

type answers struct{ err error }

func (a *answers) Object(int, runtime.Object) {}
func (a *answers) Error(err error)            { a.err = err }

// The path and the query arrive as they were sent; a malformed address is refused.
func TestSubresource(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Method + " " + r.URL.RequestURI()
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	var found Address
	sub := &Subresource[*corev1.PodProxyOptions]{
		NewOptions: func() *corev1.PodProxyOptions { return &corev1.PodProxyOptions{} },
		Path:       func(o *corev1.PodProxyOptions) string { return o.Path },
		Find: func(_ context.Context, a Address) (Target, error) {
			found = a
			return Target{Host: host, Transport: http.DefaultTransport}, nil
		},
	}
	for _, row := range []struct{ method, id, path, want, location string }{
		{"GET", "web", "", "", "/x/proxy/?a=b"},
		{"HEAD", "web", "", "", "/x/proxy/?a=b"},
		{"POST", "web", "", "POST /?a=b", ""},
		{"GET", "http:web:80", "/", "GET /?a=b", ""},
		{"GET", "web:http", "/a/b/", "GET /a/b/?a=b", ""},
		{"GET", "web:http", "a", "GET /a?a=b", ""},
	} {
		got = ""
		responder, w := &answers{}, httptest.NewRecorder()
		handler, err := sub.Connect(t.Context(), row.id, &corev1.PodProxyOptions{Path: row.path}, responder)
		if err != nil {
			t.Fatal(err)
		}
		handler.ServeHTTP(w, httptest.NewRequest(row.method, "/x/proxy"+row.path+"?a=b", nil))
		if location := w.Header().Get(
			"Location",
		); got != row.want || responder.err != nil ||
			location != row.location ||
			(w.Code == http.StatusMovedPermanently) != (location != "") {
			t.Errorf("%+v: %q, %v, %d, to %q", row, got, responder.err, w.Code, location)
		}
	}
	if want := (Address{Name: "web", Port: "http"}); found != want {
		t.Errorf("found %+v", found)
	}
	for _, id := range []string{"a:b:c:d", "ftp:web:80", ":80", ""} {
		if _, err := sub.Connect(t.Context(), id, &corev1.PodProxyOptions{}, nil); err == nil {
			t.Errorf("%q is taken", id)
		}
	}
}
