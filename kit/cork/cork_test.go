package cork

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
)

// counting counts connections, and what is written on them.
type counting struct {
	net.Listener

	connections, writes atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.connections.Add(1)
	return l.count(c), nil
}

func (l *counting) count(c net.Conn) net.Conn { return counted{c, &l.writes} }

type counted struct {
	net.Conn

	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// serve starts a server over TLS with HTTP/2, whose listener wrap may change, and returns how to reach it.
func serve(tb testing.TB, wrap func(net.Listener) net.Listener, handle http.HandlerFunc) (*counting, *rest.Config) {
	tb.Helper()
	server := httptest.NewUnstartedServer(handle)
	count := &counting{Listener: server.Listener}
	server.Listener, server.EnableHTTP2 = wrap(count), true
	server.StartTLS()
	tb.Cleanup(server.Close)
	return count, &rest.Config{Host: server.URL, BearerToken: "secret", UserAgent: "tester",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// All clients of one configuration use one connection of HTTP/2, and each request is what it would be without: who asks
// is said once, and who wraps the connection meets each request once.
func TestClient(t *testing.T) {
	var requests sync.Map
	count, config := serve(t, Listener, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.UserAgent() != "tester" || len(r.Header["Met"]) != 1 ||
			!slices.Equal(r.Header["Authorization"], []string{"Bearer secret"}) {
			t.Errorf("the request is %s %s with %v", r.Proto, r.URL, r.Header)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests.Store(string(body), true)
		_, _ = w.Write(body)
	})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return marking{next} })
	corked, err := Client(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		client, err := rest.HTTPClientFor(rest.CopyConfig(corked))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Post(config.Host, "text/plain", bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if _, came := requests.Load(text); !came || string(body) != text || err != nil {
			t.Errorf("sent %q, answered %q, %v", text, body, err)
		}
	}
	if n := count.connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if _, err := Client(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/missing"}}); err == nil {
		t.Error("a connection without its authority is made")
	}
}

// marking notes in a request that it met it.
type marking struct{ next http.RoundTripper }

func (m marking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Add("Met", "1")
	return m.next.RoundTrip(r)
}

// BenchmarkRequest is a small request with its answer: the processor time of both ends, and what both write.
func BenchmarkRequest(b *testing.B) {
	answer, question := bytes.Repeat([]byte("a"), 600), bytes.Repeat([]byte("q"), 1200)
	handle := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	}
	for name, corked := range map[string]bool{"plain": false, "corked": true} {
		wrap := func(l net.Listener) net.Listener { return l }
		if corked {
			wrap = Listener
		}
		count, config := serve(b, wrap, handle)
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return count.count(c), err
		}
		if corked {
			var err error
			if config, err = Client(config); err != nil {
				b.Fatal(err)
			}
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			b.Fatal(err)
		}
		ask := func() {
			response, err := client.Post(config.Host, "text/plain", bytes.NewReader(question))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		ask()
		for _, atOnce := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", name, atOnce), func(b *testing.B) {
				before, writes := processor(b), count.writes.Load()
				b.SetParallelism(atOnce)
				b.RunParallel(func(each *testing.PB) {
					for each.Next() {
						ask()
					}
				})
				b.ReportMetric(float64(processor(b)-before)/1e3/float64(b.N), "cpu-µs/op")
				b.ReportMetric(float64(count.writes.Load()-writes)/float64(b.N), "writes/op")
			})
		}
	}
}

// processor is the processor time of this process, in nanoseconds.
func processor(tb testing.TB) int64 {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
