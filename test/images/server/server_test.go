package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// serve starts a server on free ports.
func serve(t *testing.T, args ...string) *Server {
	t.Helper()
	args = append([]string{"--http=127.0.0.1:0", "--tcp=127.0.0.1:0", "--udp=127.0.0.1:0", "--grpc=127.0.0.1:0"},
		args...)
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{options: o, health: newHealth(time.Now(), o), out: &lines{out: &bytes.Buffer{}},
		end: make(chan ending, 1)}
	if err := s.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func (s *Server) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

func TestRoutes(t *testing.T) {
	t.Setenv("VERSION", "7")
	s := serve(t)
	file := "/file?path=" + filepath.Join(t.TempDir(), "f")
	for _, c := range []struct {
		method, path, body string
		code               int
		part               string
	}{
		{"GET", "/", "", 200, "version 7"},
		{"GET", "/env?name=VERSION", "", 200, "7\n"},
		{"GET", "/env?name=NOSUCH", "", 404, "NOSUCH"},
		{"GET", "/env", "", 200, "VERSION=7\n"},
		{"GET", "/headers", "", 200, "User-Agent: Go"},
		{"POST", "/echo", "said", 200, "said"},
		{"GET", file, "", 404, "no such file"},
		{"PUT", file, "content", 204, ""},
		{"GET", file, "", 200, "content"},
		{"GET", "/healthz", "", 200, "ok"},
		{"POST", "/healthz?ok=false", "", 204, ""},
		{"GET", "/healthz", "", 503, "healthz fails"},
		{"GET", "/readyz", "", 200, "ok"},
		{"POST", "/healthz?ok=maybe", "", 400, "true or false"},
		{"GET", "/sleep?for=1ms", "", 200, "slept 1ms"},
		{"POST", "/exit?code=900", "", 400, "between 0 and 255"},
		{"POST", "/allocate?mib=1", "", 200, "1 MiB"},
		{"GET", "/nosuch", "", 404, ""},
	} {
		if code, body := s.ask(t, c.method, c.path, c.body); code != c.code || !strings.Contains(body, c.part) {
			t.Errorf("%s %s: %d %q, want %d with %q", c.method, c.path, code, body, c.code, c.part)
		}
	}
}

func TestARequestEndsTheServer(t *testing.T) {
	s := serve(t)
	s.ask(t, "POST", "/exit?code=9", "")
	if how := <-s.end; how.code != 9 || how.crash {
		t.Errorf("it ends with %+v", how)
	}
}

func TestHealthOverGRPC(t *testing.T) {
	s := serve(t)
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	check := func(service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
		answer, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetStatus()
	}
	if got := check(""); got != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("at first %v", got)
	}
	s.health.set("db", false)
	if got := check("db"); got != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("after the switch %v", got)
	}
	if _, err := client.Check(context.Background(),
		&grpc_health_v1.HealthCheckRequest{Service: "unknown-x"}); err == nil {
		t.Error("an unknown service got an answer")
	}
}

func TestTCPEcho(t *testing.T) {
	s := serve(t)
	conn, err := net.Dial("tcp", s.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "ping" {
		t.Errorf("%q, %v", got, err)
	}
}

// Each datagram is answered by the host's name, to the port that it came from.
func TestUDPAnswersWithTheHostsName(t *testing.T) {
	s := serve(t)
	for range 2 {
		conn, err := net.Dial("udp", s.udp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("who")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 256)
		if n, err := conn.Read(got); err != nil || string(got[:n]) != host()+"\n" {
			t.Errorf("%q, %v", got[:n], err)
		}
	}
}

func TestHealthFollowsTheFlagsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(time.Now(), options{healthyAfter: 2 * time.Second, unhealthyAt: 5 * time.Second})
		for second, want := range map[int]bool{0: false, 1: false, 2: true, 4: true, 5: false, 9: false} {
			if got := h.healthy("healthz", h.start.Add(time.Duration(second)*time.Second)); got != want {
				t.Errorf("after %d s: %t", second, got)
			}
		}
	})
}

func TestMainEndsAsTold(t *testing.T) {
	message := filepath.Join(t.TempDir(), "message")
	var out bytes.Buffer
	code := Main([]string{"--http=", "--exit-after=1ms", "--exit-code=5", "--termination-message=gone",
		"--termination-path=" + message}, &out, io.Discard)
	if code != 5 {
		t.Errorf("status %d", code)
	}
	if got, err := os.ReadFile(message); err != nil || string(got) != "gone" {
		t.Errorf("the termination message is %q, %v", got, err)
	}
	if !strings.Contains(out.String(), "ending with status 5") {
		t.Errorf("it logged %q", out.String())
	}
}

func TestBadFlagsEndWithTwo(t *testing.T) {
	for _, args := range [][]string{{"--nosuch"}, {"--exit-code=300"}, {"extra"}} {
		var errOut bytes.Buffer
		if code := Main(args, io.Discard, &errOut); code != 2 || errOut.Len() == 0 {
			t.Errorf("%v: status %d, %q", args, code, errOut.String())
		}
	}
}
