package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
)

func TestAccessesOf(t *testing.T) {
	for _, row := range []struct{ method, path, want string }{
		{"GET", "/metrics", "[{get metrics}]"},
		{"HEAD", "/metrics/resource", "[{get metrics}]"},
		{"GET", "/metrics/../exec/ns/web/app", "[{get metrics}]"}, // redirected to its clean path, and checked again
		{"GET", "/metricsandmore", "[{get proxy}]"},
		{"GET", "//metrics", "[{get proxy}]"},
		{"GET", "/Metrics", "[{get proxy}]"},
		{"GET", "/stats/summary", "[{get stats}]"},
		{"POST", "/stats", "[{create stats}]"},
		{"GET", "/logs/", "[{get log}]"},
		{"DELETE", "/logs/pods/x", "[{delete log}]"},
		{"GET", "/pods", "[{get pods} {get proxy}]"},
		{"GET", "/pods/", "[{get pods} {get proxy}]"},
		{"GET", "/runningpods/", "[{get pods} {get proxy}]"},
		{"GET", "/healthz", "[{get healthz} {get proxy}]"},
		{"GET", "/healthz/syncloop", "[{get healthz} {get proxy}]"},
		{"GET", "/configz", "[{get configz} {get proxy}]"},
		{"PUT", "/configz", "[{update configz} {update proxy}]"},
		{"GET", "/containerLogs/ns/web/app", "[{get proxy}]"},
		{"PATCH", "/containerLogs/ns/web/app", "[{patch proxy}]"},
		{"GET", "/serviceproxy/ns/web", "[{get proxy}]"},
		{"GET", "/exec/ns/web/app", "[{create proxy}]"}, // a WebSocket begins with GET
		{"POST", "/exec/ns/web/app", "[{create proxy}]"},
		{"GET", "/attach/ns/web/app", "[{create proxy}]"},
		{"GET", "/portForward/ns/web", "[{create proxy}]"},
		{"GET", "/", "[{get proxy}]"},
		{"GET", "", "[{get proxy}]"},
		{"CONNECT", "/metrics", "[]"},
		{"OPTIONS", "/metrics", "[]"},
		{"get", "/metrics", "[]"},
	} {
		if got := fmt.Sprint(accessesOf(row.method, row.path)); got != row.want {
			t.Errorf("%s %s: %s, want %s", row.method, row.path, got, row.want)
		}
	}
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{"": "", "Bearer": "", "Bearer ": "", "Bearer a": "a", "bearer  a ": "a",
		" BEARER a": "a", "Basic a": "", "Bearer a b": "", "Bearera": ""} {
		if got := bearer(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

// A user is known by a certificate of the cluster or by a token, and gets what the API allows.
func TestWhoMayAsk(t *testing.T) {
	n := newNode(t)
	stranger := newAuthority(t).client(apiserverUser)
	for _, row := range []struct {
		name        string
		certificate *tls.Certificate
		token       string
		path        string
		want        int
		says        string
	}{
		{"nobody", nil, "", "/healthz", 401, "a client certificate or a bearer token is required"},
		{"nobody, at a path that is not there", nil, "", "/none", 401, "a client certificate or a bearer token"},
		{"the API server", own(n, apiserverUser), "", "/exec/ns/web/app", 400, ""},
		{"a master", own(n, "ann", "g", mastersGroup), "", "/metrics", 200, "up 1"},
		{"a certificate of nobody's", &stranger, "", "/metrics", 0, ""},
		{"a certificate of nobody's, and a token", &stranger, "prometheus", "/metrics", 0, ""},
		{"a certificate without a name", own(n, "", "g"), "", "/metrics", 401, "a client certificate or"},
		{"a master without a name", own(n, "", mastersGroup), "", "/metrics", 401, "a client certificate or"},
		{"a certificate without a name, and a token", own(n, "", "g"), "prometheus", "/metrics", 200, ""},
		{"another daemon", own(n, "system:kube-scheduler"), "", "/metrics", 403,
			`user "system:kube-scheduler" may not get nodes/metrics of this node`},
		{"a node", own(n, "system:node:n1", "system:nodes"), "", "/pods", 403,
			`user "system:node:n1" may not get nodes/pods or nodes/proxy of this node`},
		{"a node with a token", own(n, "system:node:n1", "system:nodes"), "prometheus", "/metrics", 403, ""},
		{"a certificate with a right", own(n, "by-certificate"), "", "/metrics/resource", 200, "used 1"},
		{"a certificate with a right, elsewhere", own(n, "by-certificate"), "", "/pods", 403, ""},
		{"a token of nobody's", nil, "expired", "/metrics", 401, "the bearer token is not valid"},
		{"a token that is too long", nil, strings.Repeat("x", 16<<10+1), "/metrics", 401, "is not valid"},
		{"a Pod", nil, "pod", "/metrics", 403, `user "system:serviceaccount:ns:default" may not get nodes/metrics of`},
		{"the API server's name", nil, "apiserver", "/metrics", 403, ""},
		{"the masters' group", nil, "master", "/metrics", 403, ""},
		{"a tool for metrics", nil, "prometheus", "/metrics", 200, "up 1"},
		{"a tool for metrics, at the Pods'", nil, "prometheus", "/metrics/resource", 200, "used 1"},
		{"a tool for metrics, elsewhere", nil, "prometheus", "/stats/summary", 403, ""},
		{"a tool for metrics, at the containers'", nil, "prometheus", "/metrics/cadvisor", 200, "contained 1"},
		{"a tool for metrics, at the probes'", nil, "prometheus", "/metrics/probes", 200, "probed 1"},
		{"a viewer, at the containers'", nil, "viewer", "/metrics/cadvisor", 403, "nodes/metrics"},
		{"a viewer, at the probes'", nil, "viewer", "/metrics/probes", 403, "nodes/metrics"},
		{"a tool for metrics, by a detour", nil, "prometheus", "/metrics/../pods", 307, "-> /pods"},
		{"a tool for metrics, by a hidden detour", nil, "prometheus", "/metrics/..%2fpods", 404, ""},
		{"who may see Pods", nil, "viewer", "/pods", 200, ""},
		{"who may see Pods, those that run", nil, "viewer", "/runningpods/", 200, ""},
		{"who may see how it is", nil, "viewer", "/healthz", 200, "ok"},
		{"who may see statistics", nil, "viewer", "/stats/summary", 200, ""},
		{"who may see logs", nil, "viewer", "/logs/", 200, ""},
		{"who may see logs, of containers", nil, "viewer", "/containerLogs/ns/web/app", 403, ""},
		{"who may not see the configuration", nil, "viewer", "/configz", 403, ""},
		{"who may see the configuration", nil, "configurer", "/configz", 200, `"maxPods":7`},
		{"who may read all else", nil, "proxier", "/pods", 200, ""},
		{"who may read all else, the configuration", nil, "proxier", "/configz", 200, `"maxPods":7`},
		{"who may read all else, nothing", nil, "proxier", "/none", 404, ""},
		{"who may read all else, and act", nil, "proxier", "/exec/ns/web/app?command=sh&output=1", 403,
			`user "proxier" may not create nodes/proxy of this node`},
	} {
		code, body, err := n.askBy(row.path, row.token, row.certificate)
		if code != row.want || (row.want == 0) != (err != nil) || !strings.Contains(body, row.says) {
			t.Errorf("%s: %s: %d %q, %v, want %d %q", row.name, row.path, code, body, err, row.want, row.says)
		}
	}
}

// askBy requests a path with a token, a certificate, or both: an empty token and a nil certificate are left out.
func (n *node) askBy(path, token string, certificate *tls.Certificate) (int, string, error) {
	var header http.Header
	if token != "" {
		header = withToken(token)
	}
	var certificates []tls.Certificate
	if certificate != nil {
		certificates = append(certificates, *certificate)
	}
	return n.ask(http.MethodGet, path, header, certificates...)
}

func own(n *node, user string, groups ...string) *tls.Certificate {
	certificate := n.client(user, groups...)
	return &certificate
}

// An unknown method is refused before the API is asked about its verb: clients could make up any number of them.
func TestMethods(t *testing.T) {
	n := newNode(t)
	for method, want := range map[string]int{"HEAD": 200, "OPTIONS": 405, "ANY": 405, "DELETE": 403} {
		if code, body, err := n.ask(method, "/metrics", withToken("prometheus")); code != want || err != nil {
			t.Errorf("%s: %d %s, %v, want %d", method, code, body, err, want)
		}
	}
	if len(n.api.asked) != 2 {
		t.Errorf("the API was asked for %+v", n.api.asked)
	}
}

// While the API cannot be asked, only users that need no review are admitted, and no client learns where the API
// is.
func TestWhileReviewsFail(t *testing.T) {
	n := newNode(t)
	n.api.fail(errors.New("dial tcp 10.0.0.1:6443: connection refused"))
	const says = "this node cannot ask the API server who may use the node API: try again\n"
	for _, row := range []struct {
		name        string
		certificate *tls.Certificate
		token       string
		want        int
		says        string
	}{
		{"a token", nil, "prometheus", 503, says},
		{"a certificate", own(n, "by-certificate"), "", 503, says},
		{"nobody", nil, "", 401, "a client certificate or a bearer token is required\n"},
		{"the API server", own(n, apiserverUser), "", 200, "up 1\n"},
		{"a master", own(n, "ann", mastersGroup), "", 200, "up 1\n"},
	} {
		if code, body, err := n.askBy("/metrics", row.token, row.certificate); code != row.want ||
			body != row.says {
			t.Errorf("%s: %d %q, %v, want %d", row.name, code, body, err, row.want)
		}
	}
}

// A flood of invalid tokens is rejected.
func TestFloodOfTokens(t *testing.T) {
	n := newNode(t)
	counts := map[int]int{}
	for i := range 60 {
		code, _, err := n.ask(http.MethodGet, "/metrics", withToken(fmt.Sprint("bad", i)))
		if err != nil {
			t.Fatal(err)
		}
		counts[code]++
	}
	if counts[401] < 20 || counts[429] == 0 || counts[401]+counts[429] != 60 {
		t.Errorf("answers: %v", counts)
	}
}

// A client without a certificate may send a large token, again and again, but no header that takes much memory; the
// API server may, because a command may be long.
func TestLargeHeaders(t *testing.T) {
	n := newNode(t)
	large, larger := strings.Repeat("x", 15<<10), strings.Repeat("x", 64<<10)
	for name, row := range map[string]struct {
		header      string
		certificate *tls.Certificate
		want        int
	}{
		"large":                          {large, nil, 200},
		"too large":                      {larger, nil, 400},
		"too large, of the API server":   {larger, own(n, apiserverUser), 200},
		"too large, of whoever is known": {larger, own(n, "by-certificate"), 200},
	} {
		header := withToken("prometheus")
		header.Set("X-Large", row.header)
		var certificates []tls.Certificate
		if row.certificate != nil {
			certificates = append(certificates, *row.certificate)
		}
		if code, body, err := n.ask(
			http.MethodGet,
			"/metrics",
			header,
			certificates...); code != row.want ||
			err != nil {
			t.Errorf("%s: %d %s, %v, want %d", name, code, body, err, row.want)
		}
	}
}

// The limit applies to each request of a connection separately.
func TestLargeHeadersAgain(t *testing.T) {
	n := newNode(t)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: n.pool()}}
	defer transport.CloseIdleConnections()
	header := withToken("prometheus")
	header.Set("X-Large", strings.Repeat("x", 15<<10))
	for i := range 5 {
		reused := false
		trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }}
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet,
			"https://"+n.address+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusOK || reused != (i > 0) {
			t.Errorf("request %d: %d, on the same connection: %v", i, response.StatusCode, reused)
		}
	}
}

// The server speaks only HTTP/1.1: one connection carries one request at a time.
func TestOneRequestAtATime(t *testing.T) {
	n := newNode(t)
	connection, err := tls.Dial(
		"tcp",
		n.address,
		&tls.Config{RootCAs: n.pool(), NextProtos: []string{"h2", "http/1.1"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if got := connection.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("%q is spoken", got)
	}
	if _, err := tls.Dial("tcp", n.address, &tls.Config{RootCAs: n.pool(), NextProtos: []string{"h2"}}); err == nil {
		t.Error("HTTP/2 is spoken")
	}
}

// Nothing behind the node API sees a token: the runtime gets a session's request without it.
func TestTokensGoNoFurther(t *testing.T) {
	s := &Server{config: Config{Reviews: (&api{}).reviewer()}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	r.Header = withToken("prometheus")
	if user, err := s.admit(r); user != "prometheus" || err != nil || len(r.Header) > 0 {
		t.Errorf("%q, %v; what is left of the headers: %v", user, err, r.Header)
	}
}
