package server

import (
	"fmt"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"keelson.dev/kit/seconds"
	"keelson.dev/services/apiserver/internal/carriedfields"
	"keelson.dev/services/apiserver/internal/registry"
	"keelson.dev/services/apiserver/internal/stack"
	"keelson.dev/services/apiserver/internal/typedfields"
)

// servedGroup is an API group with what it serves. The library installs groups too, but then everything that is
// written is checked once more for its managed fields.
type servedGroup struct {
	name string
	// versions are ordered: the first is the one that clients prefer.
	versions []groupVersion
	storages map[string]genericrest.Storage
}

// groupVersion is a version of a group with what it serves; the keys are paths such as "pods/status".
type groupVersion struct {
	schema.GroupVersion
	storages map[string]genericrest.Storage
}

// servedGroup tells in which versions the storages of a group are served.
func (s *Server) servedGroup(group registry.Group, storages map[string]genericrest.Storage) (servedGroup, error) {
	served := servedGroup{name: group.Name, storages: storages}
	// A version may have kinds of requests only: there is nothing of it to serve.
	for _, version := range group.Versions(s.scheme) {
		paths, err := registry.ServedIn(version, s.scheme, storages)
		if err != nil {
			return servedGroup{}, err
		}
		if len(paths) > 0 {
			served.versions = append(served.versions, groupVersion{version, paths})
		}
	}
	return served, nil
}

// kinds are those of the objects in the requests for the groups.
func (s *Server) kinds(groups []servedGroup) (typedfields.Kinds, error) {
	stored := map[schema.GroupVersionKind]bool{}
	for _, group := range groups {
		for _, version := range group.versions {
			for path, storage := range version.storages {
				kind, err := endpoints.GetResourceKind(version.GroupVersion, storage, s.scheme)
				if err != nil {
					return typedfields.Kinds{}, fmt.Errorf("serving %s: %w", path, err)
				}
				_, readable := storage.(genericrest.Getter)
				stored[kind] = stored[kind] || readable
			}
		}
	}
	var kinds typedfields.Kinds
	for kind, stored := range stored {
		if stored {
			kinds.Stored = append(kinds.Stored, kind)
		} else {
			kinds.Asked = append(kinds.Asked, kind)
		}
	}
	return kinds, nil
}

// serveGroup answers requests for what the group serves and for what that is.
func (s *Server) serveGroup(group servedGroup, types managedfields.TypeConverter) error {
	s.core.RegisterDestroyFunc(func() {
		for _, storage := range group.storages {
			storage.Destroy()
		}
	})
	if len(group.versions) == 0 {
		return nil
	}
	root, all := genericapiserver.APIGroupPrefix, s.core.AggregatedDiscoveryGroupManager
	if group.name == "" {
		root, all = genericapiserver.DefaultLegacyAPIPrefix, s.core.AggregatedLegacyDiscoveryGroupManager
	}
	for _, version := range group.versions {
		resources, _, err := s.endpoints(root, version, types).InstallREST(s.core.Handler.GoRestfulContainer)
		if err != nil {
			return fmt.Errorf("serving %s: %w", version.GroupVersion, err)
		}
		all.AddGroupVersion(group.name, apidiscoveryv2.APIVersionDiscovery{
			Version: version.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: resources})
		s.awaitStorages(version)
	}
	s.tellVersions(group)
	return nil
}

// endpoints are the requests for what a version serves.
func (s *Server) endpoints(
	root string, version groupVersion, types managedfields.TypeConverter,
) *endpoints.APIGroupVersion {
	return &endpoints.APIGroupVersion{
		Root:                       root,
		GroupVersion:               version.GroupVersion,
		Storage:                    version.storages,
		OptionsExternalVersion:     &schema.GroupVersion{Version: "v1"},
		Serializer:                 s.codecs,
		ParameterCodec:             runtime.NewParameterCodec(s.scheme),
		Typer:                      s.scheme,
		Creater:                    roomy{s.scheme}, //nolint:misspell // the library spells it so
		Convertor:                  s.scheme,
		ConvertabilityChecker:      s.scheme,
		UnsafeConvertor:            runtime.UnsafeObjectConvertor(s.scheme),
		Defaulter:                  s.scheme,
		Namer:                      runtime.Namer(meta.NewAccessor()),
		TypeConverter:              types,
		EquivalentResourceRegistry: s.core.EquivalentResourceRegistry,
		Authorizer:                 s.core.Authorizer,
		Admit:                      carriedfields.Over(s.config.AdmissionControl),
		MinRequestTimeout:          seconds.Of(s.config.MinRequestTimeout),
		MaxRequestBodyBytes:        s.config.MaxRequestBodyBytes,
	}
}

// roomy makes objects. The library creates them in a goroutine of their own and asks for the first one there: by then
// the stack is to be large enough.
type roomy struct{ runtime.ObjectCreater }

// New implements runtime.ObjectCreater.
func (r roomy) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	stack.Grow()
	return r.ObjectCreater.New(kind)
}

// awaitStorages lets the server be ready only when the watch caches of the version's resources are.
func (s *Server) awaitStorages(version groupVersion) {
	for path, storage := range version.storages {
		if cached, ok := storage.(genericrest.StorageWithReadiness); ok {
			s.core.StorageReadinessHook.RegisterStorage(metav1.GroupVersionResource{
				Group: version.Group, Version: version.Version, Resource: path}, cached)
		}
	}
}

// tellVersions answers which versions the group has.
func (s *Server) tellVersions(group servedGroup) {
	container := s.core.Handler.GoRestfulContainer
	if group.name == "" {
		legacy := s.core.AggregatedLegacyDiscoveryGroupManager
		versions := discovery.NewLegacyRootAPIHandler(s.config.DiscoveryAddresses, s.codecs,
			genericapiserver.DefaultLegacyAPIPrefix)
		container.Add(discoveryendpoint.WrapAggregatedDiscoveryToHandler(versions, legacy, legacy).
			GenerateWebService(genericapiserver.DefaultLegacyAPIPrefix, metav1.APIVersions{}))
		return
	}
	told := metav1.APIGroup{Name: group.name}
	for _, version := range group.versions {
		told.Versions = append(told.Versions,
			metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version})
	}
	told.PreferredVersion = told.Versions[0]
	s.core.DiscoveryGroupManager.AddGroup(told)
	container.Add(discovery.NewAPIGroupHandler(s.codecs, told).WebService())
}
