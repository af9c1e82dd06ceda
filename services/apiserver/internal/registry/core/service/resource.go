// Package service is the resource Service of the core group: a stable address for a changing set of Pods. Cluster IPs
// and node ports are taken from their ranges before a Service is stored and given back after it is gone.
package service

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/keptport"
	"keelson.dev/services/apiserver/internal/alloc"
	"keelson.dev/services/apiserver/internal/clusterip"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

// The ports that Services are given on Nodes.
const (
	DefaultFirstNodePort = keptport.FirstNodePort
	DefaultLastNodePort  = keptport.LastNodePort
)

// Config says what Services are given from.
type Config struct {
	// ClusterIPs is where cluster IPs come from.
	ClusterIPs *clusterip.Pool
	// FirstNodePort and LastNodePort bound the node ports; 0 means the default.
	FirstNodePort, LastNodePort int
	// Endpoints and Transport are what /proxy hands requests on to, and how.
	Endpoints Endpoints
	Transport http.RoundTripper
	// Tell is told what repairs find; it may be nil.
	Tell func(clusterip.Finding)
}

// Resource is the Service with its /status. What a Service is given is settled before the store sees it.
var Resource = resource.Resource[*corev1.Service]{
	Name:         "services",
	Singular:     "service",
	ShortNames:   []string{"svc"},
	Categories:   []string{"all"},
	New:          func() *corev1.Service { return &corev1.Service{} },
	NewList:      func() runtime.Object { return &corev1.ServiceList{} },
	Default:      Default,
	Spec:         resource.PartOf(func(s *corev1.Service) *corev1.ServiceSpec { return &s.Spec }),
	Status:       resource.PartOf(func(s *corev1.Service) *corev1.ServiceStatus { return &s.Status }),
	NoGeneration: true,
	Strategy: resource.Strategy[*corev1.Service]{
		Name:             apivalidation.NameIsDNSLabel,
		PrepareForUpdate: func(s, _ *corev1.Service) { dropStaleIngress(s) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*corev1.Service]{
		PrepareForUpdate: func(s, _ *corev1.Service) { dropStaleIngress(s) },
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Columns: columns,
	Fields: []resource.Field[*corev1.Service]{
		{Label: "spec.clusterIP", Value: func(s *corev1.Service) string { return s.Spec.ClusterIP }},
		{Label: "spec.type", Value: func(s *corev1.Service) string { return string(s.Spec.Type) }},
	},
	ReturnDeleted: true,
}

// dropStaleIngress forgets the load balancer of a Service that has none any more.
func dropStaleIngress(s *corev1.Service) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// allocating is the Service that is given what it needs.
type allocating struct {
	rest.Served[*corev1.Service]
	config Config
}

// Entry is the Service, which is given addresses and ports from what c says.
func Entry(c Config) rest.Entry { return allocating{rest.Serve(Resource), c} }

// Storages opens the stores of Services and of what they are given from.
func (a allocating) Storages(o rest.Options) (map[string]genericrest.Storage, error) {
	allocations, err := alloc.Open(o)
	if err != nil {
		return nil, err
	}
	r, err := a.config.ranges(allocations)
	if err != nil {
		allocations.Close()
		return nil, fmt.Errorf("preparing the ranges of Services: %w", err)
	}
	// A write is validated once, before the Service is given anything.
	a.Strategy.Validate, a.Strategy.ValidateUpdate = nil, nil
	a.Customize = func(store *genericregistry.Store) { store.AfterDelete = r.afterDelete }
	a.Wrap = func(s *rest.Storage) genericrest.Storage {
		return &storage{Storage: s, ranges: r, audits: newAudits(s, r, a.config.Tell), allocations: allocations}
	}
	a.Subresources = map[string]func(*rest.Storage) genericrest.Storage{
		"services/proxy": func(s *rest.Storage) genericrest.Storage {
			return newProxy(proxied{services: s, endpoints: a.config.Endpoints, transport: a.config.Transport})
		},
	}
	paths, err := a.Served.Storages(o)
	if err != nil {
		allocations.Close()
	}
	return paths, err
}

func (c Config) ranges(s *alloc.Store) (*ranges, error) {
	if c.FirstNodePort == 0 && c.LastNodePort == 0 {
		c.FirstNodePort, c.LastNodePort = DefaultFirstNodePort, DefaultLastNodePort
	}
	ports, err := s.Ports("node-ports", c.FirstNodePort, c.LastNodePort)
	if err != nil {
		return nil, err
	}
	return &ranges{ips: c.ClusterIPs, ports: ports}, nil
}

// Destroy closes both stores.
func (s *storage) Destroy() {
	s.Storage.Destroy()
	s.allocations.Close()
}

// detached returns a context for giving back: it must be done even if the client has gone.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
}
