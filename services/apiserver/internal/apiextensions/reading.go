package apiextensions

import (
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"

	"keelson.dev/services/apiserver/internal/negotiated"
)

// As long as the definitions are still being read, what nobody knows may be a resource of one of them, and a list of
// what there is lacks them. Who asks is told to come back: a collector that took its answer for whole would take
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

// Over lets next say which groups there are only when it can say of all.
func (s *Server) Over(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.URL.Path == "/apis" || r.URL.Path == "/apis/") && !s.complete() {
			refuse(w, r, serializer)
			return
		}
		next.ServeHTTP(w, r)
	})
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
