// Package inflight gives each client its share of the requests in flight: of all a quarter of what others leave.
// Neither the library's limit, which counts all of them together, nor its priority and fairness, which counts those
// that are worked on, keeps one client which sends its bodies slowly from taking every place.
package inflight

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/fairshare"
	"keelson.dev/services/apiserver/internal/negotiated"
)

// Limit is how many requests of all clients there may be.
type Limit struct {
	// ReadOnly and Mutating are how many requests of each kind tenants, nodes and the mesh's own daemons may have in
	// flight each; zero is no limit.
	ReadOnly, Mutating int
	// Together is how many times as many all of them may have: a client with none may always have one, and one client
	// may have many names. Zero is for where another limit counts all.
	Together int
	// LongRunning tells the requests that last, which another limit counts.
	LongRunning request.LongRunningRequestCheck
	// Serializer encodes a refusal as the client asks for it.
	Serializer runtime.NegotiatedSerializer
}

// With lets a client's requests through to the handler unless it has its share in flight. Members of system:masters are
// not counted, as by the library's limit.
func (l Limit) With(handler http.Handler) http.Handler {
	readOnly, mutating := l.kind(l.ReadOnly), l.kind(l.Mutating)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		by, found := request.UserFrom(r.Context())
		if !known || !found || slices.Contains(by.GetGroups(), user.SystemPrivilegedGroup) || l.LongRunning(r, info) {
			handler.ServeHTTP(w, r)
			return
		}
		of := mutating
		if readsOnly(info.Verb) {
			of = readOnly
		}
		client := fairshare.Client(by.GetName())
		if err := of.begin(client); err != nil {
			negotiated.Writer{Serializer: l.Serializer, Version: metav1.Unversioned}.Error(w, r, err)
			return
		}
		defer of.end(client)
		handler.ServeHTTP(w, r)
	})
}

// kind is the requests in flight of one kind.
type kind struct {
	shares *fairshare.Shares // nil: there is no limit
	// all is how many there are, most how many there may be: zero is no limit.
	all  atomic.Int64
	most int64
}

func (l Limit) kind(limit int) *kind {
	if limit == 0 {
		return &kind{}
	}
	return &kind{shares: fairshare.New(int64(limit), 1), most: int64(limit * l.Together)}
}

// begin counts one more of the client, or returns why it may not begin.
func (k *kind) begin(client string) error {
	if k.shares == nil {
		return nil
	}
	if all := k.all.Add(1); k.most > 0 && all > k.most {
		k.all.Add(-1)
		return apierrors.NewTooManyRequests(fmt.Sprintf("%d requests of all clients are in flight: try again later",
			k.most), retryAfter)
	}
	if !k.shares.Take(client, 1) {
		k.all.Add(-1)
		return tooMany(client)
	}
	return nil
}

func (k *kind) end(client string) {
	if k.shares != nil {
		k.all.Add(-1)
		k.shares.Give(client, 1)
	}
}

func readsOnly(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

const retryAfter = 1 // second

func tooMany(client string) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf("%s has its share of requests in flight, a quarter of what others "+
		"leave: try again later", client), retryAfter)
}
