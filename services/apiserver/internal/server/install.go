package server

import (
	"context"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"keelson.dev/services/apiserver/internal/registry"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// install serves every group of the registry.
func (s *Server) install(context.Context) error {
	groups := registry.Groups(registry.Config{
		Authenticators: s.authn,
		Audiences:      s.options.audiences(),
		Authorizer:     s.authority,
	})
	options := rest.Options{Scheme: s.scheme, RESTOptions: s.store}
	var core map[string]genericrest.Storage
	var named []*genericapiserver.APIGroupInfo
	for _, group := range groups {
		storages, err := group.NewStorage(options)
		if err != nil {
			return err
		}
		info := s.groupInfo(group.GroupVersion, storages)
		switch group.Group {
		case "":
			core = storages
			if err := s.generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, info); err != nil {
				return fmt.Errorf("serving the core group: %w", err)
			}
			continue
		case eventsv1.GroupName:
			// One store for both shapes of an Event.
			storages["events"] = core["events"]
		}
		named = append(named, info)
	}
	if s.tokens != nil {
		s.tokens.objects.storages = core
	}
	if err := s.generic.InstallAPIGroups(named...); err != nil {
		return fmt.Errorf("serving the named groups: %w", err)
	}
	return s.addHooks()
}

func (s *Server) groupInfo(gv schema.GroupVersion, storages map[string]genericrest.Storage) *genericapiserver.APIGroupInfo {
	return &genericapiserver.APIGroupInfo{
		PrioritizedVersions:          []schema.GroupVersion{gv},
		VersionedResourcesStorageMap: map[string]map[string]genericrest.Storage{gv.Version: storages},
		OptionsExternalVersion:       &schema.GroupVersion{Version: "v1"},
		Scheme:                       s.scheme,
		ParameterCodec:               runtime.NewParameterCodec(s.scheme),
		NegotiatedSerializer:         s.codecs,
	}
}
