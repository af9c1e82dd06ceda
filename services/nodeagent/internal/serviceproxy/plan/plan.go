// Package plan decides what a node does for a Service: at which destinations it is reached, to which endpoints
// connections are led, and whom the node keeps out. The plan follows from the Service, its EndpointSlices and what is
// known of the nodes alone: nothing here does I/O, reads a clock or takes a lock.
//
// Local has one meaning, that of the traffic policies: what is local stays on this node, with this node's endpoints.
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
	// KeptPorts are the ports that the node keeps. No Service takes them by an address that its author names, be it
	// this node's or another's: the agents would never learn that the Service is gone.
	KeptPorts []keptport.Port
	// ClusterRanges are those of Pods and Services. No Service takes an address of them by naming it.
	ClusterRanges []netip.Prefix
}

// Input is all that the traffic of one Service follows from.
type Input struct {
	Service *corev1.Service
	Slices  []*discoveryv1.EndpointSlice
	Node    Node
	// Peers are all nodes; nil for none.
	Peers *Peers
	// APIServers is where they are reached. No Service takes that, at whatever address of that machine.
	APIServers []netip.AddrPort
}

// Plan is what the node has to do for one Service.
type Plan struct {
	Ports []Port
	// ClusterIPs reject every port that is none of the Service's.
	ClusterIPs []netip.Addr
	// SourceRanges may use the load balancer's addresses; empty means all. Guard names them.
	SourceRanges []netip.Prefix
	Guard        ID
	// Hairpins are the endpoints' addresses from which a Pod of this node may reach itself.
	Hairpins    []netip.Addr
	HealthCheck *HealthCheck
	// Problems are sentences about what of the Service was left out.
	Problems []string
}

// HealthCheck is what a health check node port answers.
type HealthCheck struct {
	NodePort uint16
	// ReadyEndpoints is how many Pods of this node take new connections.
	ReadyEndpoints int
}

// ID names a port of a Service in one address family.
type ID [16]byte

// Port is one port of a Service in one address family.
type Port struct {
	Name     string
	Protocol corev1.Protocol
	ID       ID
	IPv6     bool
	// Number and NodePort are as the Service says.
	Number, NodePort uint16
	Frontends        []Frontend
	// ClusterEndpoints are those for connections that may leave the node, LocalEndpoints those for connections that
	// must not: the node's own.
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

// TrafficClass is whose connections to a frontend are led by which traffic policy.
type TrafficClass uint32

// The classes: internal traffic is that to ClusterIPs, external that to all other destinations. Local keeps to the
// node's own endpoints; of external traffic only what comes from outside of the cluster.
const (
	InternalCluster TrafficClass = iota + 1
	InternalLocal
	ExternalCluster
	ExternalLocal
)

// Rank orders the claims of Services to one destination: the address that the cluster gave wins over those that users
// name.
type Rank int

// The ranks, the strongest first.
const (
	ByClusterIP Rank = iota
	ByNodePort
	ByLoadBalancer
	ByExternalIP
)

// Frontend is one place at which a port is reached.
type Frontend struct {
	Destination
	Class TrafficClass
	Rank  Rank
	// Guarded lets only the Plan's SourceRanges in.
	Guarded bool
}

// LabelProxyName says that another proxy carries a Service or an EndpointSlice.
const LabelProxyName = "service.kubernetes.io/service-proxy-name"

// There are MaxProblems sentences about one Service, whatever is wrong with it, and then this one.
const (
	MaxProblems  = 20
	MoreProblems = "more of it is left out, for reasons like these"
)

// Destinations are all at which the Service is reached.
func (p *Plan) Destinations() []Destination {
	var out []Destination
	for i := range p.Ports {
		for _, f := range p.Ports[i].Frontends {
			out = append(out, f.Destination)
		}
	}
	return out
}

// port returns a port by its ID; one without frontends if there is none.
func (p *Plan) port(id ID, ipv6 bool) *Port {
	for i := range p.Ports {
		if p.Ports[i].ID == id && p.Ports[i].IPv6 == ipv6 {
			return &p.Ports[i]
		}
	}
	return &Port{}
}
