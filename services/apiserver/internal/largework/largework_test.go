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

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/services/apiserver/internal/objectsize"
)

func TestWeight(t *testing.T) {
	for _, row := range []struct{ sent, known, trusted, others int64 }{
		{0, 0, 0, ordinary},
		{objectsize.Large - 1, objectsize.Large - 1, 0, ordinary},
		{objectsize.Large, 0, objectsize.Large, ordinary},
		{0, objectsize.Large, objectsize.Large, ordinary},
		{ordinary, ordinary + 1, ordinary + 1, ordinary + 1},
		{10, 1 << 30, 1 << 30, 1 << 30},
	} {
		trusted, others := weight(row.sent, row.known, true), weight(row.sent, row.known, false)
		if trusted != row.trusted || others != row.others {
			t.Errorf("%+v: %d of who is trusted, %d of others", row, trusted, others)
		}
	}
}

// served is a handler behind a limit of eight objects of 1,000,000 bytes: one client has two of them at a time. Each
// request stays until it is let go.
type served struct {
	http.Handler
	sizes    objectsize.Book
	underWay atomic.Int64
	leave    chan struct{}
}

func serve() *served {
	s := &served{leave: make(chan struct{})}
	limit := Limit{Bytes: 8_000_000, Bodies: 32_000_000, MaxBodyBytes: 2_000_000, Sizes: &s.sizes,
		Serializer:  scheme.Codecs,
		LongRunning: genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), nil)}
	s.Handler = limit.With(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.underWay.Add(1)
		defer s.underWay.Add(-1)
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.RawQuery == "sent" {
			_, _ = w.Write([]byte("some of it"))
		}
		<-s.leave
		if r.URL.Path == "/list" {
			_, _ = w.Write(make([]byte, 1_000_000))
		}
	}))
	return s
}

func (s *served) ask(ctx context.Context, name, verb, path string, body io.Reader) *httptest.ResponseRecorder {
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: name})
	info := &request.RequestInfo{IsResourceRequest: true, Verb: verb, Namespace: "a", Resource: "configmaps"}
	if !strings.HasPrefix(path, "/list") {
		info.Name = strings.Trim(path, "/")
	}
	ctx = request.WithRequestInfo(ctx, info)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPatch, path, body))
	return w
}

// scheduler is one of the mesh's own daemons.
const scheduler = "system:kube-scheduler"

// TestLargeRequestsWaitForTheirTurn: of a client's requests about large things no more than its share are worked on,
// whether they bring much or are about much, and whatever they are, others' and small ones of daemons wait for none of
// them.
func TestLargeRequestsWaitForTheirTurn(t *testing.T) {
	for name, row := range map[string]struct {
		verb, path string
		sent       int
	}{
		"much is sent":   {"patch", "/small", 1_000_000},
		"a large object": {"patch", "/large", 2},
		"a long list":    {"list", "/list", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve()
				s.sizes.Note(func() objectsize.Object {
					return objectsize.Object{Namespace: "a", Name: "large",
						Resource: schema.GroupResource{Resource: "configmaps"}}
				}, 1_000_000)
				go s.ask(t.Context(), "bob", "list", "/list", nil) // from now on it is known how long it is
				s.leave <- struct{}{}
				synctest.Wait()
				ask := func(who string) {
					w := s.ask(t.Context(), who, row.verb, row.path, bytes.NewReader(make([]byte, row.sent)))
					if w.Code != http.StatusOK {
						t.Errorf("%d %s", w.Code, w.Body)
					}
				}
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() { ask("ann") })
				}
				synctest.Wait()
				if got := s.underWay.Load(); got != 2 {
					t.Errorf("%d are worked on", got)
				}
				for i := range 5 {
					tiny := fmt.Sprint("/tiny", i)
					all.Go(func() { s.ask(t.Context(), scheduler, "patch", tiny, strings.NewReader("{}")) })
				}
				all.Go(func() { s.ask(t.Context(), "ann", "watch", row.path, nil) })
				all.Go(func() { ask("carl") })
				synctest.Wait()
				if got := s.underWay.Load(); got != 2+5+1+1 {
					t.Errorf("beside them %d are worked on", got-2)
				}
				close(s.leave)
				all.Wait()
			})
		})
	}
}

// TestSmallRequestsOfTenantsAreBounded: of what a tenant or a node asks, however small it is, no more is worked on at a
// time than leaves others their turn; what daemons ask is.
func TestSmallRequestsOfTenantsAreBounded(t *testing.T) {
	for client, want := range map[string]int64{"ann": 7, "system:node:node-1": 7, scheduler: 20} {
		synctest.Test(t, func(t *testing.T) {
			s := serve()
			for range 20 {
				go s.ask(t.Context(), client, "patch", "/small", strings.NewReader("{}"))
			}
			synctest.Wait()
			if got := s.underWay.Load(); got != want {
				t.Errorf("of 20 small requests of %s %d are worked on, want %d", client, got, want)
			}
			close(s.leave)
		})
	}
}

// A Namespace lies in none, whatever the library says of a request for it.
func TestANamespaceIsKnown(t *testing.T) {
	g := &gate{Limit: Limit{Sizes: &objectsize.Book{}}}
	namespaces := schema.GroupResource{Resource: "namespaces"}
	g.Sizes.Note(func() objectsize.Object { return objectsize.Object{Resource: namespaces, Name: "a"} }, 1_000_000)
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	for path, want := range map[string]int64{"/api/v1/namespaces/a": 1_000_000, "/api/v1/namespaces/a/pods/a": 0} {
		info, err := resolver.NewRequestInfo(httptest.NewRequest(http.MethodPatch, path, nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := g.known(info); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// TestSomebodyNewWaitsForNobody: however much others do, a client that has nothing under way is answered, even with
// more than one client may have. A client that reads its answer slowly keeps no other waiting, not even itself.
func TestSomebodyNewWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve()
		s.sizes.Answered(objectsize.List{Namespace: "a", Resource: schema.GroupResource{Resource: "configmaps"}}, 1<<40,
			time.Now())
		for i := range 50 {
			for range 3 {
				go s.ask(t.Context(), fmt.Sprint("busy", i), "list", "/list", nil)
				go s.ask(t.Context(), fmt.Sprint("slow", i), "list", "/list?sent", nil)
			}
		}
		for second, want := range []int64{50 + 50, 50 + 100, 50 + 150} {
			synctest.Wait()
			if got := s.underWay.Load(); got != want {
				t.Errorf("of 50 busy and 50 slow clients, %d requests are worked on after %d s, want %d", got, second,
					want)
			}
			time.Sleep(longest)
		}
		close(s.leave)
	})
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
			go s.ask(t.Context(), "ann", "patch", "/small", bytes.NewReader(make([]byte, 1_000_000)))
		}
		synctest.Wait()
		if got := s.underWay.Load(); got != 2 {
			t.Errorf("%d of 2 are worked on beside slow ones", got)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := s.ask(brief, "ann", "patch", "/small", bytes.NewReader(make([]byte, 1_000_000)))
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
		for range 4 { // 2,000,000 bytes each, of 32,000,000
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
			{"ann", 1_000_000, http.StatusGatewayTimeout},
			{"ann", 100, http.StatusOK},
			{"bob", 1_000_000, http.StatusOK},
		} {
			w := s.ask(brief, row.name, "patch", "/small", bytes.NewReader(make([]byte, row.bytes)))
			if w.Code != row.want {
				t.Errorf("%d bytes of %s: %d %s", row.bytes, row.name, w.Code, w.Body)
			}
		}
		_ = send.Close()
		synctest.Wait()
		w := s.ask(t.Context(), "ann", "patch", "/small", bytes.NewReader(make([]byte, 1_000_000)))
		if w.Code != http.StatusOK {
			t.Errorf("once there is room: %d %s", w.Code, w.Body)
		}
	})
}
