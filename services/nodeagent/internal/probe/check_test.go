package probe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/handlers"
)

func checkOn(t *testing.T, address string, handler func(port int) corev1.ProbeHandler) (Outcome, string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, _ := strconv.Atoi(port)
	c := &checker{client: handlers.NewClient(), dialer: handlers.Dialer(), version: "test"}
	container := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(number)}}}
	return c.check(context.Background(), Target{Container: container, IP: host},
		&corev1.Probe{ProbeHandler: handler(number), TimeoutSeconds: 2})
}

func httpHandler(change func(*corev1.HTTPGetAction)) func(int) corev1.ProbeHandler {
	return func(int) corev1.ProbeHandler {
		get := &corev1.HTTPGetAction{Port: intstr.FromString("web")}
		change(get)
		return corev1.ProbeHandler{HTTPGet: get}
	}
}

// server answers /code/<n> with that status, and /redirect?to=URL with a redirect.
func server(t *testing.T, start func(http.Handler) *httptest.Server) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/code/{n}", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.PathValue("n"))
		w.WriteHeader(code)
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "own.host" || r.Header.Get("X-A") != "1" || r.Header.Get("User-Agent") != "kube-probe/test" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	s := start(mux)
	t.Cleanup(s.Close)
	return s
}

// POD-136: 200 to 399 succeed, everything else fails.
func TestHTTP(t *testing.T) {
	s := server(t, httptest.NewServer)
	for code, want := range map[int]Outcome{200: Success, 204: Success, 299: Success, 300: Warning,
		301: Warning, 399: Warning, 400: Failure,
		404: Failure, 500: Failure} {
		got, message := checkOn(t, s.Listener.Addr().String(),
			httpHandler(func(g *corev1.HTTPGetAction) { g.Path = "/code/" + strconv.Itoa(code) }))
		if got != want {
			t.Errorf("%d: %s, %s", code, got, message)
		}
		if got == Warning && message != "Probe terminated redirects, Response body: " {
			t.Errorf("%d: message %q", code, message)
		}
		if got == Failure && message != "HTTP probe failed with statuscode: "+strconv.Itoa(code) {
			t.Errorf("%d: message %q", code, message)
		}
	}
}

// POD-136: a code below 200 is no success.
func TestHTTPBelow200(t *testing.T) {
	listener := listen(t, func(c net.Conn) {
		defer c.Close()
		if _, err := c.Read(make([]byte, 1024)); err == nil {
			fmt.Fprint(c, "HTTP/1.1 199 Odd\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
	})
	if got, message := checkOn(t, listener, httpHandler(func(*corev1.HTTPGetAction) {})); got != Failure {
		t.Errorf("%s, %s", got, message)
	}
}

func TestHTTPHeadersAndRedirects(t *testing.T) {
	s := server(t, httptest.NewServer)
	address := s.Listener.Addr().String()
	for name, row := range map[string]struct {
		get  func(*corev1.HTTPGetAction)
		want Outcome
	}{
		"headers": {func(g *corev1.HTTPGetAction) {
			g.Path, g.HTTPHeaders = "headers", []corev1.HTTPHeader{{Name: "Host", Value: "own.host"},
				{Name: "X-A", Value: "1"}}
		}, Success},
		"query":                     {func(g *corev1.HTTPGetAction) { g.Path = "/redirect?to=/code/500" }, Failure},
		"redirect to the same host": {func(g *corev1.HTTPGetAction) { g.Path = "/redirect?to=/code/200" }, Success},
		"redirect to another host": {func(g *corev1.HTTPGetAction) { g.Path = "/redirect?to=http://192.0.2.1/" },
			Warning},
		"endless redirects":           {func(g *corev1.HTTPGetAction) { g.Path = "/redirect?to=/redirect" }, Failure},
		"unknown port":                {func(g *corev1.HTTPGetAction) { g.Port = intstr.FromString("nope") }, Unknown},
		"not encrypted":               {func(g *corev1.HTTPGetAction) { g.Scheme = corev1.URISchemeHTTPS }, Failure},
		"nobody listens on this host": {func(g *corev1.HTTPGetAction) { g.Host = "127.0.0.77" }, Failure},
	} {
		if got, message := checkOn(t, address, httpHandler(row.get)); got != row.want {
			t.Errorf("%s: %s, %s", name, got, message)
		}
	}
}

// POD-136: HTTPS without a check of the certificate.
func TestHTTPS(t *testing.T) {
	s := server(t, httptest.NewTLSServer)
	got, message := checkOn(t, s.Listener.Addr().String(),
		httpHandler(func(g *corev1.HTTPGetAction) { g.Scheme, g.Path = corev1.URISchemeHTTPS, "/code/200" }))
	if got != Success {
		t.Errorf("%s, %s", got, message)
	}
}

// listen accepts connections on loopback and passes them to serve.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			serve(connection)
		}
	}()
	return listener.Addr().String()
}

// POD-137: an open port is enough, even if the other side closes at once.
func TestTCP(t *testing.T) {
	open := listen(t, func(c net.Conn) { c.Close() })
	closed := listen(t, func(net.Conn) {})
	handler := func(port int) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}
	}
	if got, message := checkOn(t, open, handler); got != Success {
		t.Errorf("%s, %s", got, message)
	}
	refused := func(port int) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("web"),
			Host: "127.0.0.78"}}
	}
	if got, message := checkOn(t, closed, refused); got != Failure || !strings.Contains(message, "refused") {
		t.Errorf("%s, %s", got, message)
	}
}

// POD-135
func TestGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, states := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(s, states)
	states.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	for service, want := range map[string]struct {
		outcome Outcome
		message string
	}{
		"":     {Success, "service healthy"},
		"down": {Failure, `service unhealthy (responded with "NOT_SERVING")`},
		"none": {Failure, "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"},
	} {
		got, message := checkOn(t, listener.Addr().String(), func(port int) corev1.ProbeHandler {
			return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: int32(port), Service: ptr.To(service)}}
		})
		if got != want.outcome || message != want.message {
			t.Errorf("%q: %s, %s", service, got, message)
		}
	}
	plain := listen(t, func(c net.Conn) { c.Close() })
	if got, message := checkOn(t, plain, func(port int) corev1.ProbeHandler {
		return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: int32(port)}}
	}); got != Failure {
		t.Errorf("no gRPC server: %s, %s", got, message)
	}
}

func TestNoDiagnostic(t *testing.T) {
	if got, _ := checkOn(t, "127.0.0.1:1",
		func(int) corev1.ProbeHandler { return corev1.ProbeHandler{} }); got != Unknown {
		t.Errorf("got %s", got)
	}
}
