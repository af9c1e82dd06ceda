package recentwrites

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/requestbody"
)

func TestWeight(t *testing.T) {
	for _, row := range []struct{ sent, known, want int64 }{
		{0, 0, least}, {least - 1, 0, least}, {least + 1, 0, least + 1}, {10, least + 1, least + 1},
		{10_000, 5000, 10_000}, {20_000, 0, 20_000}, {20_001, 0, 20_000}, {-1, 0, 20_000}, {-1, 30_000, 30_000},
	} {
		r := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader("a"))
		r.ContentLength = row.sent
		if got := weight(requestbody.Length(r, 20_000), row.known); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

// asked is a request of a user, and how it is answered.
type asked struct {
	who, verb, name, query, resource string
	sent                             int
	want                             int
}

func (a asked) of(t *testing.T, h http.Handler) {
	t.Helper()
	groups := []string{user.AllAuthenticated}
	if a.who == "admin" {
		groups = append(groups, user.SystemPrivilegedGroup)
	}
	if a.resource == "" {
		a.resource = "configmaps"
	}
	ctx := request.WithUser(context.Background(), &user.DefaultInfo{Name: a.who, Groups: groups})
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: a.verb, Namespace: "a",
		Name: a.name, Resource: a.resource})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/x?"+a.query,
		strings.NewReader(strings.Repeat("a", a.sent))))
	if w.Code != a.want || (w.Code == http.StatusTooManyRequests) != (w.Header().Get("Retry-After") == "5") {
		t.Errorf("%+v: %d, Retry-After %q: %s", a, w.Code, w.Header().Get("Retry-After"), w.Body)
	}
}

// Who writes much is refused until it is forgotten what he wrote; others go on, and what is no write of what is kept
// counts nothing.
func TestWritesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := &objectsize.Book{}
		sizes.Note(func() objectsize.Object {
			return objectsize.Object{
				Namespace: "a",
				Name:      "large",
				Resource:  schema.GroupResource{Resource: "configmaps"},
			}
		}, 100_000)
		h := Limit{Bytes: 1_000_000, MaxBodyBytes: 100_000, Sizes: sizes, Serializer: scheme.Codecs,
			Cached: func(of schema.GroupResource) bool { return of.Resource != "events" },
		}.With(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ok, refused := http.StatusOK, http.StatusTooManyRequests
		for range 3 {
			for _, free := range []asked{
				{who: "ann", verb: "get", name: "large", want: ok},
				{who: "ann", verb: "delete", name: "large", want: ok},
				{who: "ann", verb: "create", resource: "events", sent: 100_000, want: ok},
				{who: "ann", verb: "patch", name: "large", query: "dryRun=All", want: ok},
				{who: "admin", verb: "patch", name: "large", want: ok},
				{who: "system:kube-scheduler", verb: "patch", name: "large", want: ok},
			} {
				free.of(t, h)
			}
		}
		// 250,000 bytes are a quarter.
		asked{who: "ann", verb: "create", sent: 100_000, want: ok}.of(t, h)
		asked{who: "ann", verb: "patch", name: "large", sent: 10, want: ok}.of(t, h)
		time.Sleep(kept / 2)
		asked{who: "ann", verb: "update", name: "small", sent: 50_000, want: ok}.of(t, h)
		for _, a := range []asked{
			{who: "ann", verb: "create", sent: 10, want: refused},
			{who: "ann", verb: "patch", name: "large", query: "fieldManager=dryRun=All", want: refused},
			{who: "ann", verb: "patch", name: "large", query: "dryRun=", want: refused},
			{who: "ann", verb: "patch", name: "large", query: "dryRun=All", want: ok},
			{who: "ann", verb: "get", name: "large", want: ok},
			{who: "carl", verb: "create", sent: 100_000, want: ok},
			{who: "system:node:n", verb: "create", sent: 100_000, want: ok},
			{who: "system:kube-scheduler", verb: "create", sent: 100_000, want: ok},
		} {
			a.of(t, h)
		}
		time.Sleep(kept/2 + 2*together) // all but the last is forgotten
		asked{who: "ann", verb: "create", sent: 100_000, want: ok}.of(t, h)
		asked{who: "ann", verb: "create", sent: 100_000, want: refused}.of(t, h)
		time.Sleep(kept / 2)
		asked{who: "ann", verb: "create", sent: 100_000, want: ok}.of(t, h)
	})
}
