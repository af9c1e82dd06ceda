// Package owncache gives a controller a cache that it alone reads, for a kind of which there may be many objects and
// few are its own: the service's cache would hold them all.
package owncache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"keelson.dev/kit/controller"
)

// New makes a cache of the objects whose field has the value. It runs beside the controller (Builder.Beside).
func New(s *controller.Setup, field, value string) (cache.Cache, error) {
	own, err := cache.New(s.Config, cache.Options{Scheme: s.Scheme,
		DefaultFieldSelector: fields.OneTermEqualSelector(field, value)})
	if err != nil {
		return nil, fmt.Errorf("building the cache of what has the %s %s: %w", field, value, err)
	}
	return own, nil
}
