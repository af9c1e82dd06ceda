// Package inflight gives each client its share of the requests in flight: of all a quarter of what others leave. The
// library's limit counts all of them together, so that one client which sends its bodies slowly could take every place.
package inflight

import (
	"fmt"
	"net/http"
	"slices"

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
	// ReadOnly and Mutating are how many requests of each kind all clients may have in flight.
	ReadOnly, Mutating int
	// LongRunning tells the requests that last, which another limit counts.
	LongRunning request.LongRunningRequestCheck
	// Serializer encodes a refusal as the client asks for it.
	Serializer runtime.NegotiatedSerializer
}

// With lets a client's requests through to the handler unless it has its share in flight. Members of system:masters are
// not counted, as by the library's limit.
func (l Limit) With(handler http.Handler) http.Handler {
	readOnly, mutating := fairshare.New(int64(l.ReadOnly), 1), fairshare.New(int64(l.Mutating), 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		by, found := request.UserFrom(r.Context())
		if !known || !found || slices.Contains(by.GetGroups(), user.SystemPrivilegedGroup) || l.LongRunning(r, info) {
			handler.ServeHTTP(w, r)
			return
		}
		shares := mutating
		if readsOnly(info.Verb) {
			shares = readOnly
		}
		client := fairshare.Client(by.GetName())
		if !shares.Take(client, 1) {
			negotiated.Writer{Serializer: l.Serializer, Version: metav1.Unversioned}.Error(w, r, tooMany(client))
			return
		}
		defer shares.Give(client, 1)
		handler.ServeHTTP(w, r)
	})
}

func readsOnly(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

func tooMany(client string) error {
	const retryAfter = 1 // second
	return apierrors.NewTooManyRequests(fmt.Sprintf("%s has its share of requests in flight, a quarter of what others "+
		"leave: try again later", client), retryAfter)
}
