package server

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/managedfields"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/apiextensions"
	"keelson.dev/services/apiserver/internal/clusterip"
	"keelson.dev/services/apiserver/internal/eventbatch"
	"keelson.dev/services/apiserver/internal/httpproxy"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry"
	"keelson.dev/services/apiserver/internal/registry/core/service"
	"keelson.dev/services/apiserver/internal/registry/core/serviceaccount/tokenrequest"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/typedfields"
)

// install serves every group of the registry.
func (s *Server) install() error {
	config, err := s.registryConfig()
	if err != nil {
		return err
	}
	options := rest.Options{Scheme: s.scheme, RESTOptions: s.store}
	var groups []servedGroup
	for _, group := range registry.Groups(config) {
		storages, err := group.Storages(options)
		if err != nil {
			return err
		}
		s.objects.open(group.Name, storages)
		served, err := s.servedGroup(group, storages)
		if err != nil {
			return err
		}
		groups = append(groups, served)
	}
	if err := s.enabled.apply(groups); err != nil {
		return err
	}
	s.served = versionsOf(groups)
	s.served[apiextensions.Group] = []string{apiextensions.Version}
	if err := s.serveGroups(groups); err != nil {
		return err
	}
	s.tellOfExtensions()
	return s.serveDiscovery(s.core.Handler.NonGoRestfulMux)
}

// versionsOf are the names of the groups' versions, by group.
func versionsOf(groups []servedGroup) map[string][]string {
	all := map[string][]string{}
	for _, group := range groups {
		for _, version := range group.versions {
			all[group.name] = append(all[group.name], version.Version)
		}
	}
	return all
}

// serveGroups answers what is asked of any of the groups.
func (s *Server) serveGroups(groups []servedGroup) error {
	kinds, err := s.kinds(groups)
	if err != nil {
		return err
	}
	types, err := typedfields.New(s.scheme, s.config.OpenAPIV3Config, kinds)
	if err != nil {
		return err
	}
	for _, group := range groups {
		if err := s.serveGroup(group, types); err != nil {
			return err
		}
	}
	return s.openBatches(types)
}

// openBatches lets Events come in batches too.
func (s *Server) openBatches(types managedfields.TypeConverter) error {
	store, ok := s.objects.storages["events"].(genericrest.Creater) //nolint:misspell // The library spells it so.
	if !ok {
		return notOpen("events")
	}
	return s.batches.Open(eventbatch.Config{
		Scheme: s.scheme, Serializer: s.codecs, Events: store, Admission: s.config.AdmissionControl,
		Equivalents: s.core.EquivalentResourceRegistry, Types: types,
		MaxBytes: s.config.MaxRequestBodyBytes,
	})
}

// registryConfig is what single resources need.
func (s *Server) registryConfig() (registry.Config, error) {
	nodes, err := nodeproxy.New(s.options.Nodeagents, s.objects.Node)
	if err != nil {
		return registry.Config{}, fmt.Errorf("preparing connections to nodeagents: %w", err)
	}
	ranges, err := serviceRanges(s.options.ServiceClusterIPRange)
	if err != nil {
		return registry.Config{}, daemon.UsageError(err)
	}
	transport := httpproxy.NewTransport()
	config := registry.Config{
		Authenticators: s.authn,
		Audiences:      s.options.audiences(),
		Authorizer:     s.authority,
		Params:         s.paramRights(),
		Nodes:          nodes,
		Node:           s.objects.CurrentNode,
		Namespaces:     s.objects.Namespace,
		Objects:        &s.objects,
		Leases:         &s.objects,
		Store:          s.store.Check,
		Transport:      transport,
		Services: service.Config{ClusterIPs: clusterip.NewPool(ranges), Endpoints: &s.objects,
			Transport: transport, Tell: s.tellOfAddress},
		EventTTL: s.options.EventTTL,
	}
	if s.tokens != nil && s.tokens.issuer != nil {
		config.Tokens = tokenrequest.Config{Issuer: s.tokens.issuer, Objects: &s.objects,
			Audiences: s.options.audiences()}
	}
	return config, nil
}
