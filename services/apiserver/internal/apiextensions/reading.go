package apiextensions

import (
	"mime"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"

	"keelson.dev/services/apiserver/internal/negotiated"
)

// While the definitions are still being read, an unknown resource may be one of theirs, and a list of the existing
// resources lacks them. The client is told to try again: a collector that took the answer for whole would take
// namespaces for empty and owners for gone.

// startHook is the library's name for what ends when discovery tells of the definitions.
const startHook = "poststarthook/start-apiextensions-controllers"

func startCheck(server *genericapiserver.GenericAPIServer) healthz.HealthChecker {
	checks := server.HealthzChecks()
	at := slices.IndexFunc(checks, func(c healthz.HealthChecker) bool { return c.Name() == startHook })
	if at < 0 {
		return nil
	}
	return checks[at]
}

// complete reports whether discovery tells of all definitions.
func (s *Server) complete() bool {
	if !s.told.Load() && s.started.Check(nil) == nil {
		s.told.Store(true)
	}
	return s.told.Load()
}

// Over lets next say which groups there are only when it can say of all, and keeps from it what the library breaks off
// at.
func (s *Server) Over(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.URL.Path == "/apis" || r.URL.Path == "/apis/") && !s.complete() {
			refuse(w, r, serializer)
			return
		}
		if accepted := s.accepted(r); accepted != nil {
			negotiated.Writer{Serializer: serializer, Version: metav1.Unversioned}.Error(w, r,
				negotiation.NewUnsupportedMediaTypeError(accepted))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// accepted are the media types that a request for objects of a definition may be in, which is in none of them; nil:
// whoever answers it sees to that.
func (s *Server) accepted(r *http.Request) []string {
	sent := r.Header.Get("Content-Type")
	info, known := request.RequestInfoFrom(r.Context())
	if sent == "" || sent == runtime.ContentTypeJSON || !known || !info.IsResourceRequest {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(sent)
	if err != nil {
		return nil
	}
	accepted := decideMedia(info.Verb, info.Subresource, mediaType)
	if accepted == nil {
		return nil
	}
	if _, err := s.lister.Get(info.Resource + "." + info.APIGroup); err != nil {
		return nil
	}
	return accepted
}

// behind is what comes after the server in the chain.
type behind struct {
	genericapiserver.DelegationTarget
	serializer runtime.NegotiatedSerializer
	server     *Server
}

// UnprotectedHandler implements genericapiserver.DelegationTarget.
func (b behind) UnprotectedHandler() http.Handler {
	next := b.DelegationTarget.UnprotectedHandler()
	if next == nil {
		next = http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !b.server.complete() {
			refuse(w, r, b.serializer)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, r *http.Request, serializer runtime.NegotiatedSerializer) {
	err := apierrors.NewServiceUnavailable("the CustomResourceDefinitions are still being read: try again")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	negotiated.Writer{Serializer: serializer, Version: metav1.Unversioned}.Error(w, r, err)
}
