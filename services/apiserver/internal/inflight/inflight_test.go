package inflight

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestOneClientTakesItsShareOnly: however many requests a client keeps in flight, another is answered, and one more of
// its own is refused until one ends. Reads are counted apart from writes; masters and requests that last are not.
func TestOneClientTakesItsShareOnly(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	limited := Limit{ReadOnly: 8, Mutating: 8, Serializer: scheme.Codecs,
		LongRunning: genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), nil)}.With(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Stays") != "" {
				enter <- struct{}{}
				<-leave
			}
		}))
	ask := func(name, verb string, stays bool, groups ...string) *httptest.ResponseRecorder {
		ctx := request.WithUser(context.Background(), &user.DefaultInfo{Name: name, Groups: groups})
		ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: verb})
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods", nil)
		if stays {
			r.Header.Set("Stays", "yes")
		}
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, r)
		return w
	}
	for range 2 { // a quarter of eight
		go ask("ann", "patch", true)
		<-enter
	}
	for _, row := range []struct {
		name, verb string
		group      string
		want       int
	}{
		{"ann", "update", "", http.StatusTooManyRequests},
		{"ann", "list", "", http.StatusOK},
		{"ann", "watch", "", http.StatusOK},
		{"bob", "create", "", http.StatusOK},
		{"ann", "create", user.SystemPrivilegedGroup, http.StatusOK},
	} {
		got := ask(row.name, row.verb, false, row.group)
		if got.Code != row.want {
			t.Errorf("%s %s of group %q: %d %s", row.name, row.verb, row.group, got.Code, got.Body)
		}
		if row.want == http.StatusTooManyRequests && (got.Header().Get("Retry-After") != "1" ||
			!strings.Contains(got.Body.String(), "ann has its share of requests in flight")) {
			t.Errorf("refused with %v %s", got.Header(), got.Body)
		}
	}
	leave <- struct{}{}
	leave <- struct{}{}
	for ask("ann", "patch", false).Code != http.StatusOK { // both are about to end
	}
}

// TestManyNames: a client with a name of its own for each request has no more of them in flight than all clients
// together may; without a limit, no client is counted.
func TestManyNames(t *testing.T) {
	for _, row := range []struct{ limit, want int }{{4, 8}, {0, 20}} {
		enter, leave := make(chan int, 20), make(chan struct{})
		limited := Limit{ReadOnly: 4, Mutating: row.limit, Together: 2, Serializer: scheme.Codecs,
			LongRunning: func(*http.Request, *request.RequestInfo) bool { return false }}.With(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				enter <- http.StatusOK
				<-leave
			}))
		for i := range 20 {
			go func() {
				ctx := request.WithUser(context.Background(), &user.DefaultInfo{Name: fmt.Sprint("u", i)})
				ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: "create"})
				w := httptest.NewRecorder()
				limited.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/pods", nil))
				if w.Code != http.StatusOK {
					enter <- w.Code
				}
			}()
		}
		begun := 0
		for range 20 {
			if <-enter == http.StatusOK {
				begun++
			}
		}
		if close(leave); begun != row.want {
			t.Errorf("with a limit of %d, %d requests are in flight, want %d", row.limit, begun, row.want)
		}
	}
}
