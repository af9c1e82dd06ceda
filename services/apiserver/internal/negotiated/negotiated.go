// Package negotiated writes what the apiserver answers itself, in the form that the client accepts. It is the one place
// that calls the library's writers: they read of a request what one that came over a connection has, and one that is
// made by hand may lack.
package negotiated

import (
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// Writer writes objects in their forms of a version.
type Writer struct {
	Serializer runtime.NegotiatedSerializer
	Version    schema.GroupVersion
}

// Error answers with the Status of err.
func (a Writer) Error(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, a.Serializer, a.Version, w, whole(r))
}

// Object answers with an object.
func (a Writer) Object(w http.ResponseWriter, r *http.Request, status int, object runtime.Object) {
	responsewriters.WriteObjectNegotiated(a.Serializer, negotiation.DefaultEndpointRestrictions, a.Version, w, whole(r),
		status, object, false)
}

// Status is what clients are told of an error.
func Status(err error) *metav1.Status { return responsewriters.ErrorToAPIStatus(err) }

// whole is the request with everything that the library reads of it.
func whole(r *http.Request) *http.Request {
	if r.URL != nil {
		return r
	}
	completed := r.WithContext(r.Context())
	completed.URL = &url.URL{}
	return completed
}
