package openapi

import (
	"net/http"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"

	"keelson.dev/kit/contained"
)

const (
	v2Path = "/openapi/v2"
	v3Path = "/openapi/v3"
	// keptFor is how long the documents stay after the last request. A client requests several in a row.
	keptFor = 10 * time.Minute
)

// Serve answers requests at the paths of OpenAPI with what the handler serves at other paths, and with the kinds that
// are defined or come from elsewhere; what is known of the latter goes when the documents do. The library builds all
// documents when a server starts and keeps them for as long as it runs; here the first request does.
func Serve(handler *genericapiserver.APIServerHandler, v2 *common.Config, v3 *common.OpenAPIV3Config, defined Defined,
	elsewhere func() Elsewhere) {
	d := &documents{build: func() http.Handler {
		services := handler.GoRestfulContainer.RegisteredWebServices()
		return newPublished(append(services, defined.WebServices()...), v2, v3, defined, elsewhere())
	}}
	handler.NonGoRestfulMux.Handle(v2Path, d)
	handler.NonGoRestfulMux.Handle(v3Path, d)
	handler.NonGoRestfulMux.HandlePrefix(v3Path+"/", d)
}

// documents are kept while clients request them: they take tens of MiB, and building them half a second. What is built
// again is the same to its last byte, so clients that keep it by its hash do not read it again.
type documents struct {
	build func() http.Handler

	mu    sync.Mutex
	built http.Handler
	asked time.Time
}

// ServeHTTP implements http.Handler.
func (d *documents) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.get().ServeHTTP(w, r) }

func (d *documents) get() http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = time.Now()
	if d.built == nil {
		d.built = d.build()
		d.dropAfter(keptFor)
	}
	return d.built
}

func (d *documents) dropAfter(wait time.Duration) {
	contained.After(wait, "forgetting documents", d.drop, nil)
}

// drop forgets the documents, unless a client has requested them meanwhile.
func (d *documents) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if left := keptFor - time.Since(d.asked); left > 0 {
		d.dropAfter(left)
		return
	}
	d.built = nil
}
