package largework

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestWeight(t *testing.T) {
	for _, row := range []struct{ sent, known, want int64 }{
		{0, 0, 0},
		{large - 1, large - 1, 0},
		{large, 0, large},
		{0, large, large},
		{200_000, 300_000, 300_000},
		{1 << 30, 0, 1 << 20},
		{10, 1 << 30, 1 << 20},
	} {
		if got := weight(row.sent, row.known, 1<<20); got != row.want {
			t.Errorf("%d bytes to one of %d: %d, want %d", row.sent, row.known, got, row.want)
		}
	}
}

func TestSizes(t *testing.T) {
	const big = 1 << 20
	start := time.Now()
	mine, theirs := place{client: "ann", resource: "configmaps", namespace: "a"}, place{client: "bob",
		resource: "configmaps", namespace: "a"}
	s := newSizes()
	s.learn("/small", mine, large-1, start)
	s.learn("/large", mine, big, start)
	for _, row := range []struct {
		target string
		in     place
		after  time.Duration
		want   int64
	}{
		{"/large", mine, 0, big},
		{"/large", theirs, time.Hour, big},
		{"/small", mine, lately - 1, big}, // nobody knows that it is small
		{"/other", mine, lately - 1, big},
		{"/other", mine, lately, 0},
		{"/other", theirs, 0, 0},
		{"/other", place{client: "ann", resource: "configmaps", namespace: "b"}, 0, 0},
		{"/other", place{client: "ann", resource: "configmaps", namespace: "a", many: true}, 0, 0},
	} {
		if got := s.of(row.target, row.in, start.Add(row.after)); got != row.want {
			t.Errorf("%s of %+v after %s: %d, want %d", row.target, row.in, row.after, got, row.want)
		}
	}
	s.learn("/large", theirs, 1, start)
	if got := s.of("/large", theirs, start); got != 0 {
		t.Errorf("what has become small counts %d bytes", got)
	}
}

// served is a handler behind a limit of eight objects of 100,000 bytes: one client has two of them at a time. Each
// request stays until it is let go.
type served struct {
	http.Handler
	underWay, most atomic.Int64
	leave          chan struct{}
}

func serve() *served {
	s := &served{leave: make(chan struct{})}
	s.Handler = Limit{Bytes: 800_000, Bodies: 3_200_000, MaxBodyBytes: 200_000, Serializer: scheme.Codecs,
		LongRunning: genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), nil)}.With(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			s.most.Store(max(s.most.Load(), s.underWay.Add(1)))
			defer s.underWay.Add(-1)
			_, _ = io.Copy(io.Discard, r.Body)
			<-s.leave
			if strings.Contains(r.URL.Path, "large") {
				_, _ = w.Write(make([]byte, 100_000))
			}
		}))
	return s
}

func (s *served) ask(ctx context.Context, name, verb, path string, body io.Reader) *httptest.ResponseRecorder {
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: name})
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: verb, Namespace: "a",
		Resource: "configmaps", Name: strings.Trim(path, "/")})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPatch, path, body))
	return w
}

// TestLargeRequestsWaitForTheirTurn: of a client's requests about large objects no more than its share are worked on,
// whether they bring much or are answered much, and whatever they are, small ones wait for none of them.
func TestLargeRequestsWaitForTheirTurn(t *testing.T) {
	for name, path := range map[string]string{"much is sent": "/small", "much is answered": "/large"} {
		synctest.Test(t, func(t *testing.T) {
			s := serve()
			if path == "/large" { // somebody has read it
				go s.ask(t.Context(), "bob", "get", "/large", nil)
				s.leave <- struct{}{}
				synctest.Wait()
				s.most.Store(0)
			}
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					body := []byte("{}")
					if path == "/small" {
						body = make([]byte, 100_000)
					}
					if w := s.ask(t.Context(), "ann", "patch", path, bytes.NewReader(body)); w.Code != http.StatusOK {
						t.Errorf("%d %s", w.Code, w.Body)
					}
				})
			}
			synctest.Wait()
			if got := s.underWay.Load(); got != 2 {
				t.Errorf("%s: %d are worked on", name, got)
			}
			for i := range 5 {
				go s.ask(t.Context(), "ann", "patch", fmt.Sprint("/tiny", i), strings.NewReader("{}"))
			}
			go s.ask(t.Context(), "ann", "watch", path, nil)
			go s.ask(t.Context(), "carl", "patch", path, bytes.NewReader(make([]byte, 100_000)))
			synctest.Wait()
			if got := s.underWay.Load(); got != 2+5+1+1 {
				t.Errorf("%s: beside them %d are worked on", name, got-2)
			}
			close(s.leave)
			all.Wait()
		})
	}
}

// TestNobodyWaitsForASlowBody: who sends slowly what is large holds no room meanwhile, and whose time is up while he
// waits is told so.
func TestNobodyWaitsForASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve()
		slow, send := io.Pipe()
		for range 2 {
			go s.ask(t.Context(), "ann", "patch", "/small", slow) // of unknown length: it counts as the longest
		}
		synctest.Wait()
		for range 2 {
			go s.ask(t.Context(), "ann", "patch", "/small", bytes.NewReader(make([]byte, 100_000)))
		}
		synctest.Wait()
		if got := s.underWay.Load(); got != 2 {
			t.Errorf("%d of 2 are worked on beside slow ones", got)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := s.ask(brief, "ann", "patch", "/small", bytes.NewReader(make([]byte, 100_000)))
		if w.Code != http.StatusGatewayTimeout ||
			!strings.Contains(w.Body.String(), "before the server had room for so large a request") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		_ = send.Close()
		close(s.leave)
	})
}

// TestLargeBodiesAreBounded: bodies that come take memory, and a client has its share of it. Others, and what is small,
// are taken all the same.
func TestLargeBodiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve()
		close(s.leave)
		slow, send := io.Pipe()
		for range 4 { // 200,000 bytes each, of 3,200,000
			go s.ask(t.Context(), "ann", "patch", "/small", slow)
		}
		synctest.Wait()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, row := range []struct {
			name  string
			bytes int
			want  int
		}{
			{"ann", 100_000, http.StatusGatewayTimeout},
			{"ann", 100, http.StatusOK},
			{"bob", 100_000, http.StatusOK},
		} {
			w := s.ask(brief, row.name, "patch", "/small", bytes.NewReader(make([]byte, row.bytes)))
			if w.Code != row.want {
				t.Errorf("%d bytes of %s: %d %s", row.bytes, row.name, w.Code, w.Body)
			}
		}
		_ = send.Close()
		synctest.Wait()
		w := s.ask(t.Context(), "ann", "patch", "/small", bytes.NewReader(make([]byte, 100_000)))
		if w.Code != http.StatusOK {
			t.Errorf("once there is room: %d %s", w.Code, w.Body)
		}
	})
}
