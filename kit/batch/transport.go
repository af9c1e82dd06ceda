// Package batch sends writes together that one process makes at the same time, each with an answer of its own.
//
//	transport.go  which requests may go together
//	joiner.go     when they go
//	send.go       a batch on its way, and what is answered
//	wire.go       how batches and answers are written
package batch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// maxBody is the longest body of a request that may join a batch.
const maxBody = 64 << 10

// Over returns a copy of the connection that sends writes together. It sends a write alone and at once unless
// another was sent less than 2 ms ago and is not answered yet; the writes that wait meanwhile are sent as one
// request, in which the server treats each as if it came alone. Before a write that has waited is sent, may is
// called with the write's context: its error becomes the write's. An apiserver that takes no batches gets each
// write alone.
func Over(config *rest.Config, may func(context.Context) error) *rest.Config {
	config = rest.CopyConfig(config)
	j := &joiner{may: may}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{j, next} })
	return config
}

type transport struct {
	*joiner
	next http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = transport{}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !joinable(r) {
		return t.next.RoundTrip(r)
	}
	if t.refusing() {
		return t.next.RoundTrip(t.watched(r))
	}
	if f := t.alone(); f != nil {
		defer t.ended(f)
		return t.next.RoundTrip(r)
	}
	c, err := newCall(r, t.next)
	if err != nil {
		return nil, err
	}
	t.enter(c)
	select {
	case o := <-c.outcome:
		return t.finish(c, o)
	case <-r.Context().Done():
		t.leave(c)
		return nil, context.Cause(r.Context())
	}
}

// finish turns an outcome into the result of RoundTrip. It sends a call that is to be sent alone.
func (t transport) finish(c *call, o outcome) (*http.Response, error) {
	if o.alone == nil {
		return o.response, o.err
	}
	defer t.ended(o.alone)
	r := c.request.WithContext(c.request.Context())
	r.Body = io.NopCloser(bytes.NewReader(c.item.Body))
	return t.next.RoundTrip(r)
}

// joinable reports whether a request may join a batch: it is a write of one object, is not large, and a batch
// keeps its whole header.
func joinable(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if r.ContentLength < 0 || r.ContentLength > maxBody || r.ContentLength > 0 && r.Body == nil ||
		!strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/apis/") ||
		r.Method == http.MethodDelete && IsCollection(r.URL.Path) {
		return false
	}
	for name, values := range r.Header {
		if len(values) != 1 || !slices.Contains(ownHeaders, name) && !slices.Contains(sharedHeaders, name) {
			return false
		}
	}
	return true
}

// IsCollection reports whether a path below /api/ or /apis/ names all objects of a kind, in a namespace or
// everywhere.
func IsCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	behind := 2 // the version of the core group
	if parts[0] == "apis" {
		behind = 3
	}
	if len(parts) <= behind {
		return false
	}
	parts = parts[behind:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}

var (
	// ownHeaders are those that each request of a batch has, sharedHeaders those that a batch has for all.
	ownHeaders    = []string{"Accept", "Content-Type", "Content-Length"}
	sharedHeaders = []string{"Authorization", "User-Agent"}
)

// alike reports whether two requests may be in one batch.
func alike(a, b *http.Request) bool {
	for _, name := range sharedHeaders {
		if a.Header.Get(name) != b.Header.Get(name) {
			return false
		}
	}
	return a.URL.Host == b.URL.Host && a.URL.Scheme == b.URL.Scheme
}

// newCall reads the body, which by the rules of a RoundTripper is closed then.
func newCall(r *http.Request, next http.RoundTripper) (*call, error) {
	c := &call{request: r, next: next, outcome: make(chan outcome, 1), item: Request{
		Method: r.Method, Target: r.URL.RequestURI(),
		ContentType: r.Header.Get("Content-Type"), Accept: r.Header.Get("Accept")}}
	if r.Body == nil {
		return c, nil
	}
	defer func() { _ = r.Body.Close() }()
	c.item.Body = make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, c.item.Body); err != nil {
		return nil, fmt.Errorf("reading the body of a request: %w", err)
	}
	return c, nil
}
