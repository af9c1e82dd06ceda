// Package longrunning bounds how many requests that last one client has open: watches, logs, exec and what else goes on
// until somebody ends it. Each keeps memory and goroutines of the apiserver for as long as it is open, and the limit of
// requests in flight does not count them.
package longrunning

import (
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/fairshare"
	"keelson.dev/services/apiserver/internal/negotiated"
)

// Default is how many a client may have open where nothing else is said: many times what any known controller has.
const Default = 5000

// Limit is how many are too many, and how that is told.
type Limit struct {
	// PerClient is how many one client may have open; zero is no limit.
	PerClient int
	// Is tells the requests that last from others.
	Is request.LongRunningRequestCheck
	// Serializer encodes a refusal as the client asks for it.
	Serializer runtime.NegotiatedSerializer
}

// With lets a client's requests through to the handler unless as many as one may have open are. The apiserver's own are
// not counted: without them it would never be ready.
func (l Limit) With(handler http.Handler) http.Handler {
	if l.PerClient == 0 {
		return handler
	}
	open := &counts{of: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		by, found := request.UserFrom(r.Context())
		if !known || !found || by.GetName() == user.APIServerUser || !l.Is(r, info) {
			handler.ServeHTTP(w, r)
			return
		}
		client := fairshare.Client(by.GetName())
		if !open.begin(client, l.PerClient) {
			negotiated.Writer{
				Serializer: l.Serializer,
				Version:    metav1.Unversioned,
			}.Error(
				w,
				r,
				tooMany(client, l.PerClient),
			)
			return
		}
		defer open.end(client)
		handler.ServeHTTP(w, r)
	})
}

func tooMany(client string, limit int) error {
	const retryAfter = 1 // second
	return apierrors.NewTooManyRequests(
		fmt.Sprintf("%s has %d watches and other lasting requests open, as many as one "+
			"may have (--max-long-running-requests-per-client): close some", client, limit),
		retryAfter,
	)
}

// counts are how many requests each client has open.
type counts struct {
	mu sync.Mutex // guards of
	of map[string]int
}

// begin counts one more unless there are as many as the limit.
func (c *counts) begin(client string, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[client] >= limit {
		return false
	}
	c.of[client]++
	return true
}

func (c *counts) end(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[client]--; c.of[client] == 0 {
		delete(c.of, client)
	}
}
