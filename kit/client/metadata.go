package client

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/batch"
)

// Metadata returns a client of the metadata of objects of any kind, on the daemon's connection. It asks for no
// more than that in the answers to deletions either, where the library's own client accepts the whole object.
func Metadata(config *rest.Config) (metadata.Interface, error) {
	config = metadata.ConfigFor(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return deletions{next} })
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the metadata client: %w", err)
	}
	return client, nil
}

// deletions asks for the metadata of deleted objects.
type deletions struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d deletions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		as := "PartialObjectMetadata"
		if batch.IsCollection(r.URL.Path) {
			as = "PartialObjectMetadataList"
		}
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "application/json;as="+as+";g=meta.k8s.io;v=v1")
	}
	return d.next.RoundTrip(r)
}
