// Package resources finds out which resources the apiserver serves, built-in and custom alike.
package resources

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Resource is one kind of object that the apiserver stores.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Verbs      []string
}

// Can reports whether the resource has all the verbs.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(r.Verbs, v) })
}

// Set is what one look at the apiserver found.
type Set struct {
	// List is sorted by group and resource; it has each resource only in its preferred version.
	List []Resource
	// Failed names the group versions that could not be read, sorted; their resources are missing from List.
	Failed []schema.GroupVersion
	byKind map[schema.GroupKind]Resource
}

// Lister reads the preferred resources; discovery.DiscoveryInterface is one.
type Lister interface {
	ServerPreferredResources() ([]*metav1.APIResourceList, error)
}

// Discover asks the apiserver. Groups that cannot be read are named in the set and are no error.
func Discover(server Lister) (*Set, error) {
	lists, err := server.ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, fmt.Errorf("discovering resources: %w", err)
	}
	set := &Set{byKind: map[schema.GroupKind]Resource{}}
	if partial != nil {
		for version := range partial.Groups {
			set.Failed = append(set.Failed, version)
		}
		slices.SortFunc(set.Failed, func(a, b schema.GroupVersion) int {
			return strings.Compare(a.String(),
				b.String())
		})
	}
	for _, list := range lists {
		if err := set.add(list); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(set.List, func(a, b Resource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	return set, nil
}

func (s *Set) add(list *metav1.APIResourceList) error {
	version, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return fmt.Errorf("discovering resources: group version %q: %w", list.GroupVersion, err)
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue // A subresource is no object of its own.
		}
		resource := Resource{GroupVersionResource: version.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced,
			Verbs: r.Verbs}
		s.List = append(s.List, resource)
		s.byKind[schema.GroupKind{Group: version.Group, Kind: r.Kind}] = resource
	}
	return nil
}

// OfKind returns the resource that serves the kind, in any version.
func (s *Set) OfKind(kind schema.GroupKind) (Resource, bool) {
	r, ok := s.byKind[kind]
	return r, ok
}
