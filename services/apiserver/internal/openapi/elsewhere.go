package openapi

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/util/responsewriter"
	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"keelson.dev/kit/contained"
)

// merging is what breaks off where that does.
const merging = "merging an OpenAPI document from elsewhere"

// serveIndex answers with where all documents of OpenAPI v3 are: the library's index, and the URLs.
func (p *published) serveIndex(w http.ResponseWriter, r *http.Request, urls map[schema.GroupVersion]string) {
	own := responsewriter.NewInMemoryResponseWriter()
	p.v3.HandleDiscovery(own, &http.Request{Method: http.MethodGet})
	index, err := indexWith(own.Data(), urls)
	if err != nil {
		utilruntime.HandleErrorWithContext(r.Context(), err, "Writing the index of OpenAPI documents")
		http.Error(w, "the index of OpenAPI documents could not be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Etag", strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(index))))
	http.ServeContent(w, r, v3Path, time.Time{}, bytes.NewReader(index))
}

// indexWith is the index with the URLs of versions from elsewhere, which this apiserver does not serve.
func indexWith(own []byte, urls map[schema.GroupVersion]string) ([]byte, error) {
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(own, &index); err != nil {
		return nil, fmt.Errorf("reading the index of the library: %w", err)
	}
	for version, url := range urls {
		index.Paths[pathOf(version)] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: url}
	}
	return json.Marshal(index)
}

// withOthers is a document to which others have added what they say. Neither it nor they change. One that cannot be
// merged is left out, and does not keep the others from being read.
func withOthers(own *spec.Swagger, others []*spec.Swagger) *spec.Swagger {
	for _, other := range others {
		next := copyFor(own, other)
		var err error
		broken := contained.Do(merging, func() {
			err = aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(next, other)
		})
		switch {
		case broken != nil: // It has been logged.
		case err != nil:
			utilruntime.HandleError(fmt.Errorf("%s: %w", merging, err))
		default:
			own = next
		}
	}
	return own
}

// copyFor copies what merging with the other changes.
func copyFor(own, other *spec.Swagger) *spec.Swagger {
	next := *own
	next.Definitions, next.Parameters = maps.Clone(own.Definitions), maps.Clone(own.Parameters)
	if own.Paths != nil {
		next.Paths = &spec.Paths{VendorExtensible: own.Paths.VendorExtensible, Paths: maps.Clone(own.Paths.Paths)}
	}
	for name := range other.Definitions {
		// The library adds the other's kinds to a definition that both have, and panics where there is no map.
		if definition, both := next.Definitions[name]; both {
			extensions := spec.Extensions{}
			maps.Copy(extensions, definition.Extensions)
			definition.Extensions = extensions
			next.Definitions[name] = definition
		}
	}
	return &next
}
