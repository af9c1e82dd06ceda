// Package plan decides what a node does for a Service: at which destinations clients reach it, to which endpoints
// connections go, and which clients the node rejects. The plan follows only from the Service, its EndpointSlices
// and what is known of the nodes: this package does no I/O, reads no clock and takes no lock.
//
// Local has one meaning, that of the traffic policies: local traffic stays on this node, with this node's
// endpoints.
//
//keelson:decision
package plan

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/kit/keptport"
)

// Node is what the decisions know of the node that they are for.
type Node struct {
	Name, Zone string
	// Addresses answer node ports.
	Addresses []netip.Addr
	// PodRanges are the ranges of this node's own Pods.
	PodRanges []netip.Prefix
	// KeptPorts are the ports that the node keeps. No Service takes them by an address that its author names, of this
	// node or of another: the agents would never learn that the Service is gone.
	KeptPorts []keptport.Port
	// ClusterRanges are the ranges of Pods and Services. No Service takes an address in them by naming it.
	ClusterRanges []netip.Prefix
}

// Input is all that determines the traffic of one Service.
type Input struct {
	Service *corev1.Service
	Slices  []*discoveryv1.EndpointSlice
	Node    Node
	// Peers are all nodes; nil for none.
	Peers *Peers
	// APIServers are their addresses and ports. No Service takes them, nor the port at another address of the same
	// machine.
	APIServers []netip.AddrPort
}

// Plan is what the node has to do for one Service.
type Plan struct {
	Ports []Port
	// ClusterIPs reject every port that the Service does not have.
	ClusterIPs []netip.Addr
	// SourceRanges may use the load balancer's addresses; empty means all. Guard identifies them.
	SourceRanges []netip.Prefix
	Guard        ID
	// Hairpins are the addresses of endpoints that may be Pods of this node, which may reach themselves.
	Hairpins    []netip.Addr
	HealthCheck *HealthCheck
	// Problems describe, a sentence each, what was left out of the Service.
	Problems []string
}

// HealthCheck is what a health check node port answers.
type HealthCheck struct {
	NodePort uint16
	// ReadyEndpoints is how many Pods of this node take new connections.
	ReadyEndpoints int
}

// ID identifies a port of a Service in one address family.
type ID [16]byte

// Port is one port of a Service in one address family.
type Port struct {
	Name     string
	Protocol corev1.Protocol
	ID       ID
	IPv6     bool
	// Number and NodePort are copied from the Service.
	Number, NodePort uint16
	Frontends        []Frontend
	// ClusterEndpoints are those for connections that may leave the node; LocalEndpoints, the node's own, are those
	// for connections that must not.
	ClusterEndpoints, LocalEndpoints []netip.AddrPort
	// SessionAffinity is how long a client keeps its endpoint; zero if it does not.
	SessionAffinity time.Duration
}

// Destination is where a client connects to.
type Destination struct {
	Addr     netip.Addr
	Protocol uint8
	Port     uint16
}

// TrafficClass says which traffic policy applies to the connections to a frontend.
type TrafficClass uint32

// The classes: internal traffic goes to ClusterIPs, external traffic to all other destinations. Local keeps to the
// node's own endpoints; for external traffic, only what comes from outside the cluster.
const (
	InternalCluster TrafficClass = iota + 1
	InternalLocal
	ExternalCluster
	ExternalLocal
)

// Rank orders the claims of Services to one destination: an address that the cluster assigned wins over one that a
// user names.
type Rank int

// The ranks, the strongest first.
const (
	ByClusterIP Rank = iota
	ByNodePort
	ByLoadBalancer
	ByExternalIP
)

// Frontend is one destination at which a port is reached.
type Frontend struct {
	Destination
	Class TrafficClass
	Rank  Rank
	// Guarded lets only the Plan's SourceRanges in.
	Guarded bool
}

// LabelProxyName marks a Service or an EndpointSlice that another proxy carries.
const LabelProxyName = "service.kubernetes.io/service-proxy-name"

// MaxProblems bounds the sentences about one Service; MoreProblems follows if there are more.
const (
	MaxProblems  = 20
	MoreProblems = "more of it is left out, for reasons like these"
)

// Destinations returns all destinations at which the Service is reached.
func (p *Plan) Destinations() []Destination {
	var out []Destination
	for i := range p.Ports {
		for _, f := range p.Ports[i].Frontends {
			out = append(out, f.Destination)
		}
	}
	return out
}

// port returns a port by its ID; an empty one if the plan has none.
func (p *Plan) port(id ID, ipv6 bool) *Port {
	for i := range p.Ports {
		if p.Ports[i].ID == id && p.Ports[i].IPv6 == ipv6 {
			return &p.Ports[i]
		}
	}
	return &Port{}
}
