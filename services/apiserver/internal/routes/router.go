// Package routes finds which route a request takes.
package routes

import (
	"net/http"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// maxKnown is how many kinds of requests are remembered. Those of one program are few.
	maxKnown = 4096
	// maxHeader is how long the headers of a request may be that is remembered.
	maxHeader = 256
)

// Router finds the same routes as the library's, which compares each request with all routes of its API group and
// copies those that match, but only once for requests that differ in nothing but names.
type Router struct {
	restful.CurlyRouter

	mu    sync.RWMutex
	known map[kind]found
}

// New returns a router that knows nothing yet.
func New() *Router { return &Router{known: map[kind]found{}} }

// kind is all of a request that decides about its route.
type kind struct {
	method, accept, contentType                   string
	prefix, group, version, resource, subresource string
	named, namespaced                             bool
	// parts is how many there are in the path from the resource on.
	parts int
}

type found struct {
	service *restful.WebService
	route   *restful.Route
	// services is how many there were.
	services int
}

// SelectRoute implements restful.RouteSelector.
func (r *Router) SelectRoute(services []*restful.WebService, of *http.Request) (*restful.WebService, *restful.Route,
	error) {
	k, ok := kindOf(of)
	if !ok {
		return r.CurlyRouter.SelectRoute(services, of)
	}
	r.mu.RLock()
	f := r.known[k]
	r.mu.RUnlock()
	if f.route != nil && f.services == len(services) {
		return f.service, f.route, nil
	}
	service, route, err := r.CurlyRouter.SelectRoute(services, of)
	if err == nil {
		r.remember(k, found{service, route, len(services)})
	}
	return service, route, err
}

func (r *Router) remember(k kind, f found) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) < maxKnown {
		r.known[k] = f
	}
}

// kindOf returns the kind of a request for a resource. Old forms of paths, as /api/v1/watch/pods, and empty parts are
// for the library.
func kindOf(r *http.Request) (kind, bool) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || info.Path != r.URL.Path || strings.Contains(info.Path+"/", "//") {
		return kind{}, false
	}
	before := 2 // as in /api/v1
	if info.APIGroup != "" {
		before++
	}
	if info.Namespace != "" && info.Resource != "namespaces" {
		before += 2
	}
	if strings.Count(info.Path, "/") != before+len(info.Parts) {
		return kind{}, false
	}
	k := kind{method: r.Method, accept: r.Header.Get("Accept"), contentType: r.Header.Get("Content-Type"),
		prefix: info.APIPrefix, group: info.APIGroup, version: info.APIVersion, resource: info.Resource,
		subresource: info.Subresource, named: info.Name != "", namespaced: info.Namespace != "", parts: len(info.Parts)}
	return k, len(k.accept)+len(k.contentType) <= maxHeader
}
