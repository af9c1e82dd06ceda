// Package longrunning bounds how many long-running requests one client has open: watches, logs, exec and others that go
// on until one side ends them. Each keeps memory and goroutines of the apiserver for as long as it is open, and the
// limit of requests in flight does not count them.
package longrunning

import (
	"fmt"
	"net/http"
	"net/url"
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
		n := weight(r.URL)
		if !open.begin(client, n, l.PerClient) {
			negotiated.Writer{Serializer: l.Serializer, Version: metav1.Unversioned}.Error(w, r,
				tooMany(client, l.PerClient))
			return
		}
		defer open.end(client, n)
		handler.ServeHTTP(w, r)
	})
}

// selectors is how many bytes of selectors one request keeps in memory; one with more counts as several.
const selectors = 4 << 10

// weight is as how many a request counts.
func weight(of *url.URL) int { return 1 + len(of.RawQuery)/selectors }

func tooMany(client string, limit int) error {
	const retryAfter = 1 // second
	return apierrors.NewTooManyRequests(
		fmt.Sprintf("%s has %d watches and other lasting requests open, as many as one "+
			"may have (--max-long-running-requests-per-client): close some; one whose selectors are longer than %d "+
			"bytes counts as several", client, limit, selectors),
		retryAfter,
	)
}

// counts are how many requests each client has open.
type counts struct {
	mu sync.Mutex // guards of
	of map[string]int
}

// begin counts n more unless there are more than the limit then.
func (c *counts) begin(client string, n, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[client]+n > limit {
		return false
	}
	c.of[client] += n
	return true
}

func (c *counts) end(client string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[client] -= n; c.of[client] == 0 {
		delete(c.of, client)
	}
}
