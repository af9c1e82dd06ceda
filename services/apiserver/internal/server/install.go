package server

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/eventbatch"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry"
	"keelson.dev/services/apiserver/internal/registry/core/service"
	"keelson.dev/services/apiserver/internal/registry/core/serviceaccount"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// install serves every group of the registry.
func (s *Server) install() error {
	config, err := s.registryConfig()
	if err != nil {
		return err
	}
	groups := registry.Groups(config)
	options := rest.Options{Scheme: s.scheme, RESTOptions: s.store}
	var named []*genericapiserver.APIGroupInfo
	for _, group := range groups {
		storages, err := group.Storages(options)
		if err != nil {
			return err
		}
		info, err := s.groupInfo(group.Versions(s.scheme), storages)
		if err != nil {
			return err
		}
		if group.Name != "" {
			named = append(named, info)
			continue
		}
		s.objects.storages = storages
		if err := s.core.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, info); err != nil {
			return fmt.Errorf("serving the core group: %w", err)
		}
		if err := s.openBatches(storages["events"]); err != nil {
			return err
		}
	}
	if err := s.core.InstallAPIGroups(named...); err != nil {
		return fmt.Errorf("serving the named groups: %w", err)
	}
	return s.serveDiscovery(s.core.Handler.NonGoRestfulMux)
}

// openBatches lets Events come in batches too.
func (s *Server) openBatches(events genericrest.Storage) error {
	store, ok := events.(genericrest.Creater) //nolint:misspell // The library spells it so.
	if !ok {
		return notOpen("events")
	}
	return s.batches.Open(eventbatch.Config{
		Scheme: s.scheme, Serializer: s.codecs, Events: store, Admission: s.config.AdmissionControl,
		Equivalents: s.core.EquivalentResourceRegistry, OpenAPI: s.config.OpenAPIV3Config,
		MaxBytes: s.config.MaxRequestBodyBytes,
	})
}

// registryConfig is what single resources need.
func (s *Server) registryConfig() (registry.Config, error) {
	nodes, err := nodeproxy.New(s.options.Nodeagents, s.objects.Node)
	if err != nil {
		return registry.Config{}, fmt.Errorf("preparing connections to nodeagents: %w", err)
	}
	clusterIPs, err := netip.ParsePrefix(s.options.ServiceClusterIPRange)
	if err != nil {
		return registry.Config{}, daemon.UsageError(fmt.Errorf("--service-cluster-ip-range: %w", err))
	}
	config := registry.Config{
		Authenticators: s.authn,
		Audiences:      s.options.audiences(),
		Authorizer:     s.authority,
		Nodes:          nodes,
		Node:           s.objects.CurrentNode,
		Objects:        &s.objects,
		Services:       service.Config{ClusterIPs: clusterIPs.Masked()},
		EventTTL:       s.options.EventTTL,
	}
	if s.tokens != nil && s.tokens.issuer != nil {
		config.Tokens = serviceaccount.Tokens{Issuer: s.tokens.issuer, Objects: &s.objects,
			Audiences: s.options.audiences()}
	}
	return config, nil
}

func (s *Server) groupInfo(
	versions []schema.GroupVersion, storages map[string]genericrest.Storage,
) (*genericapiserver.APIGroupInfo, error) {
	byVersion := map[string]map[string]genericrest.Storage{}
	// A version may have kinds of requests only: there is nothing of it to serve.
	var served []schema.GroupVersion
	for _, version := range versions {
		paths, err := registry.ServedIn(version, s.scheme, storages)
		if err != nil {
			return nil, err
		}
		if len(paths) > 0 {
			byVersion[version.Version] = paths
			served = append(served, version)
		}
	}
	return &genericapiserver.APIGroupInfo{
		PrioritizedVersions:          served,
		VersionedResourcesStorageMap: byVersion,
		OptionsExternalVersion:       &schema.GroupVersion{Version: "v1"},
		Scheme:                       s.scheme,
		ParameterCodec:               runtime.NewParameterCodec(s.scheme),
		NegotiatedSerializer:         s.codecs,
	}, nil
}
