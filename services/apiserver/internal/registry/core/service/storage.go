// Package service is the resource Service of the core group: a stable address for a changing set of Pods. Cluster IPs and
// node ports are taken from their ranges before a Service is stored and given back after it is gone.
package service

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/alloc"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// The ports that Services are given on Nodes.
const (
	DefaultFirstNodePort = 30000
	DefaultLastNodePort  = 32767
)

// Config says what Services are given from.
type Config struct {
	// ClusterIPs is the range of cluster IPs; its family is the cluster's.
	ClusterIPs netip.Prefix
	// FirstNodePort and LastNodePort bound the node ports; 0 means the default.
	FirstNodePort, LastNodePort int
}

var resource = rest.Resource[*corev1.Service]{
	Name:       "services",
	Singular:   "service",
	ShortNames: []string{"svc"},
	Categories: []string{"all"},
	New:        func() *corev1.Service { return &corev1.Service{} },
	NewList:    func() runtime.Object { return &corev1.ServiceList{} },
	Default:    Default,
	Strategy:   strategy,
	Status:     &statusStrategy,
	Columns:    columns,
	Fields: []rest.Field[*corev1.Service]{
		{Label: "spec.clusterIP", Value: func(s *corev1.Service) string { return s.Spec.ClusterIP }},
		{Label: "spec.type", Value: func(s *corev1.Service) string { return string(s.Spec.Type) }},
	},
	ReturnDeleted: true,
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the stores of Services and of what they are given from, and returns the Service and its /status.
func NewStorage(o rest.Options, c Config) (map[string]genericrest.Storage, error) {
	allocations, err := alloc.Open(o)
	if err != nil {
		return nil, err
	}
	r, err := c.ranges(allocations)
	if err != nil {
		allocations.Close()
		return nil, fmt.Errorf("preparing the ranges of Services: %w", err)
	}
	releasing := resource
	releasing.Customize = func(store *genericregistry.Store) { store.AfterDelete = r.afterDelete }
	opened, err := releasing.NewStorage(o)
	if err != nil {
		allocations.Close()
		return nil, err
	}
	paths := opened.Map()
	paths[resource.Name] = &storage{Storage: opened, ranges: r, audits: newAudits(opened, r), allocations: allocations}
	return paths, nil
}

func (c Config) ranges(s *alloc.Store) (*ranges, error) {
	if c.FirstNodePort == 0 && c.LastNodePort == 0 {
		c.FirstNodePort, c.LastNodePort = DefaultFirstNodePort, DefaultLastNodePort
	}
	ips, err := s.IPs("cluster-ips", c.ClusterIPs)
	if err != nil {
		return nil, err
	}
	ports, err := s.Ports("node-ports", c.FirstNodePort, c.LastNodePort)
	if err != nil {
		return nil, err
	}
	return &ranges{ips: ips, ports: ports}, nil
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
