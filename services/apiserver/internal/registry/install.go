// Package registry is the list of all resources that the apiserver serves.
package registry

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/core/configmap"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is one resource's folder: what it adds to the scheme and how its storages are made.
type Resource struct {
	// AddToScheme may be nil for a resource without a stored type.
	AddToScheme func(*runtime.Scheme) error
	NewStorage  func(rest.Options) (map[string]genericrest.Storage, error)
}

// Group is the resources of one group version.
type Group struct {
	schema.GroupVersion
	Resources []Resource
}

// Groups lists every group version and its resources.
func Groups() []Group {
	return []Group{
		{schema.GroupVersion{Version: "v1"}, []Resource{
			{configmap.AddToScheme, configmap.NewStorage},
		}},
	}
}

// NewStorage opens the stores of the group's resources; the keys are paths such as "pods/status".
func (g Group) NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	all := map[string]genericrest.Storage{}
	for _, r := range g.Resources {
		storages, err := r.NewStorage(o)
		if err != nil {
			return nil, fmt.Errorf("installing %s: %w", g.GroupVersion, err)
		}
		maps.Copy(all, storages)
	}
	return all, nil
}
