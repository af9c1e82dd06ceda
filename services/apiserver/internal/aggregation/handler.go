package aggregation

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/proxy"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/transport"
	"k8s.io/streaming/pkg/httpstream"

	"keelson.dev/services/apiserver/internal/negotiated"
)

const (
	// Prefix is where requests may be for others.
	Prefix = "/apis/"
	// via marks what has been handed on once (RFC 9110, section 7.6.3): a Service may lead back to an apiserver.
	via = "1.1 keelson-aggregation"
)

// Over answers requests for groups of APIServices, and leaves all others to next. It comes behind everything that the
// apiserver serves itself, and behind authentication, authorization and audit.
func (a *Aggregator) Over(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if len(parts) == 2 {
			if group, ok := a.group(parts[1]); ok {
				negotiated.Writer{Serializer: a.Serializer, Version: metav1.Unversioned}.Object(w, r, http.StatusOK,
					&group)
				return
			}
		}
		if len(parts) > 2 {
			if e := a.find(parts[2] + "." + parts[1]); e != nil && !e.local {
				a.handOn(w, r, e, parts)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (a *Aggregator) handOn(w http.ResponseWriter, r *http.Request, e *extension, parts []string) {
	who, ok := genericapirequest.UserFrom(r.Context())
	switch {
	case !ok:
		a.refuse(w, r, e, apierrors.NewInternalError(fmt.Errorf("the request for %s has no user", e.name)))
		return
	case isHandedOn(r):
		a.refuse(w, r, e, looped(e.name))
		return
	case slices.Contains(parts, "..") || slices.Contains(parts, "."):
		// Another server could take the path for another one than was authorized.
		a.refuse(w, r, e, apierrors.NewBadRequest("the path has a segment . or .."))
		return
	}
	host, verdict := e.target(r.Context(), a.Objects)
	if host == "" {
		a.wake(e.name)
		a.refuse(w, r, e, apierrors.NewServiceUnavailable(fmt.Sprintf("the APIService %s is unavailable: %s", e.name,
			verdict.Message)))
		return
	}
	// A watch of another server begins there: nothing here tells flow control when.
	flowcontrol.RequestDelegated(r.Context())
	on := r.Clone(r.Context())
	on.Host = serverName(e.spec.Service)
	transport.SetAuthProxyHeaders(on, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
	on.Header.Add("Via", via)
	// Whatever Connection names is taken off on the way: a client must not name the headers that say who it is.
	if httpstream.IsUpgradeRequest(r) {
		on.Header.Set("Connection", "Upgrade")
	} else {
		on.Header.Del("Connection")
	}
	location := &url.URL{Scheme: "https", Host: host, Path: r.URL.Path, RawPath: r.URL.RawPath,
		RawQuery: r.URL.RawQuery}
	handler := proxy.NewUpgradeAwareHandler(location, e.transport, false, false, failures{a, e})
	handler.RejectForwardingRedirects = true
	handler.ServeHTTP(w, on)
}

// isHandedOn reports whether an apiserver has proxied the request already.
func isHandedOn(r *http.Request) bool { return slices.Contains(r.Header.Values("Via"), via) }

// looped is the answer to a request that comes back.
func looped(name string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusLoopDetected, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("the APIService %s leads back to an apiserver", name)}}
}

func (a *Aggregator) refuse(w http.ResponseWriter, r *http.Request, e *extension, err error) {
	negotiated.Writer{Serializer: a.Serializer, Version: e.version()}.Error(w, r, err)
}

// failures answers for a server that does not.
type failures struct {
	*Aggregator
	*extension
}

// Error implements proxy.ErrorResponder.
func (f failures) Error(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		f.wake(f.name)
	}
	f.refuse(w, r, f.extension, apierrors.NewServiceUnavailable(fmt.Sprintf(
		"the server of the APIService %s does not answer: %v", f.name, err)))
}
