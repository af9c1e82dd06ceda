// Package recentwrites bounds how many bytes of late writes stay in memory. Watch caches keep each version of each
// object for a while, for watches that come late: who overwrites large objects as fast as he can would have the server
// take memory until the machine has none.
package recentwrites

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/cacher"

	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/fairshare"
	"keelson.dev/services/apiserver/internal/negotiated"
	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/requestbody"
)

const (
	// total is how many bytes tenants may have written of late, and nodes as many; one of them has a quarter of what
	// others leave.
	total = 1 << 30
	// kept is for how long watch caches keep what was written.
	kept = cacher.DefaultEventFreshDuration
	// together is within what time one client's writes are forgotten at once.
	together = time.Second
	// again is after how many seconds who was refused should try again.
	again = 5
)

// Limit is how much clients may write in a time.
type Limit struct {
	// Bytes is how many bytes of tenants, and of nodes, may be kept; zero is 1 GiB. One client has a quarter of what
	// others leave.
	Bytes int64
	// MaxBodyBytes is how long the body of a request may be: so much may be written by who has not written of late.
	MaxBodyBytes int64
	// Sizes knows how large objects are.
	Sizes *objectsize.Book
	// Cached tells of which resources watch caches keep what is written.
	Cached func(schema.GroupResource) bool
	// Serializer encodes a refusal as the client asks for it.
	Serializer runtime.NegotiatedSerializer
}

// With lets writes through to the handler while there is room for what they write, and whatever is none.
func (l Limit) With(handler http.Handler) http.Handler {
	if l.Bytes == 0 {
		l.Bytes = total
	}
	of := &writes{shares: fairshare.New(l.Bytes, l.MaxBodyBytes), open: map[string]*int64{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		by, found := request.UserFrom(r.Context())
		if !known || !found || !l.stays(r, info) || fairshare.Trusted(by) ||
			of.keep(fairshare.Client(by.GetName()), weight(requestbody.Length(r, l.MaxBodyBytes), l.known(info))) {
			handler.ServeHTTP(w, r)
			return
		}
		negotiated.Writer{Serializer: l.Serializer, Version: metav1.Unversioned}.Error(w, r,
			apierrors.NewTooManyRequests(fmt.Sprintf("what %s has written within %s fills its share of the memory "+
				"that is kept for watches; it may go on as the oldest of it is forgotten", by.GetName(), kept), again))
	})
}

// stays reports whether what the request writes stays in memory.
func (l Limit) stays(r *http.Request, info *request.RequestInfo) bool {
	if !info.IsResourceRequest || !slices.Contains([]string{"create", "update", "patch"}, info.Verb) {
		return false
	}
	if strings.Contains(r.URL.RawQuery, "dryRun") && slices.Equal(r.URL.Query()["dryRun"], []string{metav1.DryRunAll}) {
		return false
	}
	return l.Cached(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource})
}

// known is how large the object of the request is as far as anybody knows.
func (l Limit) known(info *request.RequestInfo) int64 {
	if info.Name == "" {
		return 0
	}
	return l.Sizes.OfObject(objectsize.About(info))
}

// writes are those of late.
type writes struct {
	shares *fairshare.Shares
	mu     sync.Mutex        // guards open and what it leads to
	open   map[string]*int64 // by client, what it has written of the part of time that is not over
}

// keep counts n bytes that the client writes, until they are forgotten; false where it has no room for them.
func (w *writes) keep(client string, n int64) bool {
	if !w.shares.Take(client, n) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if sum, under := w.open[client]; under {
		*sum += n
		return true
	}
	w.open[client] = &n
	contained.After(together, "closing a part of what was written", func() { w.forgetLater(client) }, nil)
	return true
}

// forgetLater closes the period that is over, and gives back what was written in it once no watch cache keeps it.
func (w *writes) forgetLater(client string) {
	w.mu.Lock()
	sum := *w.open[client]
	delete(w.open, client)
	w.mu.Unlock()
	contained.After(kept, "forgetting what was written", func() { w.shares.Give(client, sum) }, nil)
}
