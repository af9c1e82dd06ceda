// Package httpproxy hands requests at /proxy of a Pod, Service or Node on to what listens there. It opens no connection
// to the machine itself or to its link, whatever address an object claims to have.
package httpproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
)

// Address is what a client asks for, [SCHEME:]NAME[:PORT].
type Address struct{ Scheme, Name, Port string }

// Target is where the requests go.
type Target struct {
	// Scheme is http where it is empty.
	Scheme string
	// Host is an address with its port.
	Host      string
	Transport http.RoundTripper
}

// Subresource is the /proxy of a resource: all verbs, with whatever path behind it, and upgraded connections.
type Subresource[O runtime.Object] struct {
	// NewOptions returns empty options, Path the path in them.
	NewOptions func() O
	Path       func(O) string
	// Find leads to the target of an address in the namespace of the context.
	Find func(context.Context, Address) (Target, error)
}

var _ genericrest.Connecter = &Subresource[runtime.Object]{}

// New returns an empty options object.
func (s *Subresource[O]) New() runtime.Object { return s.NewOptions() }

// Destroy has nothing to close.
func (s *Subresource[O]) Destroy() {}

// NewConnectOptions returns the options that the path is read into.
func (s *Subresource[O]) NewConnectOptions() (runtime.Object, bool, string) {
	return s.NewOptions(), true, "path"
}

// ConnectMethods are all that HTTP has for what can be at the other end.
func (s *Subresource[O]) ConnectMethods() []string {
	return []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPatch,
		http.MethodPost, http.MethodPut}
}

// Connect returns the handler that hands the request on.
func (s *Subresource[O]) Connect(ctx context.Context, id string, opts runtime.Object,
	responder genericrest.Responder) (http.Handler, error) {
	options, ok := opts.(O)
	if !ok {
		return nil, fmt.Errorf("handing on to %s: unexpected options %T", id, opts)
	}
	scheme, name, port, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid proxy request %q: must be [https:]NAME[:PORT]", id))
	}
	target, err := s.Find(ctx, Address{Scheme: scheme, Name: name, Port: port})
	if err != nil {
		return nil, err
	}
	if target.Scheme == "" {
		target.Scheme = "http"
	}
	location := &url.URL{Scheme: target.Scheme, Host: target.Host}
	if path := s.Path(options); path != "" { // without one the handler redirects to "/", so that relative links work
		location.Path = utilnet.JoinPreservingTrailingSlash("/", path)
	}
	return proxy.NewUpgradeAwareHandler(location, target.Transport, true, false, proxy.NewErrorResponder(responder)),
		nil
}
