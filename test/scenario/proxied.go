package scenario

import (
	"net/http"
	"slices"
	"strings"
)

// proxied reaches Pods by the apiserver, which passes requests on to a Service or to a Pod, with any method and body.
func (w *World) proxied(names []string) {
	w.Helper()
	namespace := startProxy(w) + "/api/v1/namespaces/" + w.Namespace
	for _, path := range []string{"/services/echo:http/proxy", "/services/http:echo:80/proxy"} {
		if got, by := request(w, http.MethodGet, namespace+path+"/hostname", "", ""); got != http.StatusOK ||
			!slices.Contains(names, strings.TrimSpace(by)) {
			w.Errorf("%s: status %d by %q, want one of %v", path, got, by, names)
		}
	}
	for _, pod := range names {
		path := "/pods/" + pod + ":8080/proxy"
		if got, by := request(w, http.MethodGet, namespace+path+"/hostname", "", ""); strings.TrimSpace(by) != pod {
			w.Errorf("%s: status %d by %q", path, got, by)
		}
		if got, said := request(w, http.MethodPost, namespace+path+"/echo", "text/plain", "hello"); said != "hello" {
			w.Errorf("POST to %s: status %d, %q", path, got, said)
		}
	}
	for path, want := range map[string]int{
		"/services/echo:ftp/proxy/":   http.StatusServiceUnavailable,
		"/services/empty:http/proxy/": http.StatusServiceUnavailable,
		"/services/nobody/proxy/":     http.StatusNotFound,
	} {
		if got, said := request(w, http.MethodGet, namespace+path, "", ""); got != want {
			w.Errorf("%s: status %d, %s, want %d", path, got, said, want)
		}
	}
}
