package aggregation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	rootV2 = "/openapi/v2"
	rootV3 = "/openapi/v3"
)

// passedOn are the headers of a server's document that reach the client.
var passedOn = []string{"Content-Type", "Etag", "Vary", "Cache-Control", "Expires", "Last-Modified"}

// Documents are the OpenAPI documents of the servers. Without a request for them, no server is asked and nothing runs.
// It is safe for concurrent use.
type Documents struct {
	aggregator *Aggregator
	urls       *kept[versioned[string]]
	v2         *kept[versioned[*spec.Swagger]]
}

// versioned is what is said of a version.
type versioned[T any] struct {
	version schema.GroupVersion
	said    T
}

// Documents returns those of the servers, of which nothing is known yet.
func (a *Aggregator) Documents() *Documents {
	return &Documents{aggregator: a, urls: newKept(a.Config, rootV3, decideURL),
		v2: newKept(a.Config, rootV2, decideV2)}
}

func newKept[T any](c Config, path string, read func(schema.GroupVersion, int, []byte) (T, error)) *kept[versioned[T]] {
	return &kept[versioned[T]]{path: path, log: c.Log, objects: c.Objects,
		read: func(of schema.GroupVersion, code int, body []byte) (versioned[T], error) {
			said, err := read(of, code, body)
			return versioned[T]{of, said}, err
		}}
}

// said is what the servers that answer say, for who sent r. A request that has been handed on makes none be asked: it
// would come back.
func said[T any](a *Aggregator, k *kept[T], r *http.Request) []T {
	sources := a.sources()
	if !isHandedOn(r) {
		k.refresh(r.Context(), sources)
	}
	return k.of(sources)
}

// sources are the servers that answer, by the names of their APIServices.
func (a *Aggregator) sources() []source {
	a.mu.RLock()
	defer a.mu.RUnlock()
	sources := make([]source, 0, len(a.answering))
	for e, begun := range a.answering {
		sources = append(sources, source{e, begun})
	}
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.name, b.name) })
	return sources
}

// URLs are where the documents of OpenAPI v3 are.
func (d *Documents) URLs(r *http.Request) map[schema.GroupVersion]string {
	urls := map[schema.GroupVersion]string{}
	for _, one := range said(d.aggregator, d.urls, r) {
		if one.said != "" {
			urls[one.version] = one.said
		}
	}
	return urls
}

// V2 are the documents of OpenAPI v2, each of one version. One that stays the same is the same pointer.
func (d *Documents) V2(r *http.Request) []*spec.Swagger {
	var documents []*spec.Swagger
	for _, one := range said(d.aggregator, d.v2, r) {
		if one.said != nil {
			documents = append(documents, one.said)
		}
	}
	return documents
}

// ServeV3 answers a request for the document of a version; false if that is not of one of the servers.
func (d *Documents) ServeV3(w http.ResponseWriter, r *http.Request, version schema.GroupVersion) bool {
	e := d.aggregator.find(version.Version + "." + version.Group)
	if e == nil || e.local {
		return false
	}
	if err := d.serve(w, r, e); err != nil {
		d.aggregator.refuse(w, r, e, err)
	}
	return true
}

// serve hands a request on in the name of who sent it. The client gets an answer only if it is a document.
func (d *Documents) serve(w http.ResponseWriter, r *http.Request, e *extension) error {
	who, ok := genericapirequest.UserFrom(r.Context())
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("the request for the document of %s has no user", e.name))
	}
	if isHandedOn(r) {
		return looped(e.name)
	}
	hash := r.URL.Query().Get("hash")
	at := &url.URL{Path: pathV3(e.version())}
	if hash != "" {
		at.RawQuery = url.Values{"hash": {hash}}.Encode()
	}
	got, err := e.document(r.Context(), d.aggregator.Objects, at, who, only(r.Header, "Accept", "If-None-Match"))
	if err != nil {
		d.aggregator.wake(e.name)
		return unreadable(e.name, err)
	}
	if got.code == http.StatusMovedPermanently && hash != "" && d.moved(w, r, e, hash) {
		return nil
	}
	conditional := r.Header.Get("If-None-Match") != ""
	if err := decideHandedBack(got.code, conditional, got.header.Get("Content-Type"), got.body); err != nil {
		return unreadable(e.name, err)
	}
	maps.Copy(w.Header(), only(got.header, passedOn...))
	w.WriteHeader(got.code)
	if got.code == http.StatusOK {
		_, _ = w.Write(got.body)
	}
	return nil
}

// only are the named headers.
func only(all http.Header, names ...string) http.Header {
	some := http.Header{}
	for _, name := range names {
		if values := all.Values(name); len(values) > 0 {
			some[name] = values
		}
	}
	return some
}

func unreadable(name string, err error) error {
	return apierrors.NewServiceUnavailable(
		fmt.Sprintf("reading the OpenAPI document of the APIService %s: %v", name, err))
}

// moved leads who asked by a hash to the document that the server has now; false if that has the same hash.
func (d *Documents) moved(w http.ResponseWriter, r *http.Request, e *extension, hash string) bool {
	d.urls.expire(e)
	to := d.URLs(r)[e.version()]
	at, err := url.Parse(to)
	if to == "" || err != nil || at.Query().Get("hash") == hash {
		return false
	}
	http.Redirect(w, r, to, http.StatusFound)
	return true
}

// document reads one of the server's documents, after those who read one already.
func (e *extension) document(
	ctx context.Context, objects Objects, at *url.URL, who user.Info, header http.Header,
) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	select {
	case e.reading <- struct{}{}:
		defer func() { <-e.reading }()
	case <-ctx.Done():
		return nil, errors.New("the server has not answered earlier requests for its documents")
	}
	host, verdict := e.target(ctx, objects)
	if host == "" {
		return nil, errors.New(verdict.Message)
	}
	return e.fetch(ctx, &url.URL{Host: host, Path: at.Path, RawQuery: at.RawQuery}, who, header)
}
