package serviceproxy

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/kit/keptport"
	"keelson.dev/kit/seconds"
)

// Node is what the decisions know of the node that they are for.
type Node struct {
	Name, Zone string
	// Addresses answer node ports.
	Addresses []netip.Addr
	// PodRanges are the ranges of this node's own Pods.
	PodRanges []netip.Prefix
	// Kept are the ports that the node keeps. No Service takes them by an address that its author names, be it this
	// node's or another's: the agents would never learn that the Service is gone.
	Kept []keptport.Port
	// Ranges are those of Pods and Services. No Service takes an address of them by naming it.
	Ranges []netip.Prefix
}

// Input is all that the traffic of one Service follows from.
type Input struct {
	Service *corev1.Service
	Slices  []*discoveryv1.EndpointSlice
	Node    Node
	// Peers are all nodes; nil for none.
	Peers *Peers
	// API is where the API server is reached. No Service takes that, at whatever address of that machine.
	API []netip.AddrPort
}

// Plan is what the node has to do for one Service.
type Plan struct {
	Ports []Port
	// ClusterIPs reject every port that is none of the Service's.
	ClusterIPs []netip.Addr
	// Sources may use the load balancer's addresses; empty means all. Guard names them.
	Sources []netip.Prefix
	Guard   ID
	// Hairpins are the endpoints' addresses from which a Pod of this node may reach itself.
	Hairpins []netip.Addr
	Health   *Health
	// Problems are sentences about what of the Service was left out.
	Problems []string
}

// Health is the answer of a health check node port.
type Health struct {
	Port  uint16
	Local int
}

// ID names a port of a Service in one address family.
type ID [16]byte

// Port is one port of a Service in one address family.
type Port struct {
	Name     string
	Protocol corev1.Protocol
	ID       ID
	Six      bool
	// Number and NodePort are as the Service says.
	Number, NodePort uint16
	Frontends        []Frontend
	// Cluster are the endpoints for what may leave the node, Local those for what must not.
	Cluster, Local []netip.AddrPort
	// Affinity is how long a client keeps its endpoint.
	Affinity time.Duration
}

// Key is where a client connects to.
type Key struct {
	Addr     netip.Addr
	Protocol uint8
	Port     uint16
}

// Class is how connections to a frontend are led.
type Class uint32

// The classes. A local one keeps to the node's own endpoints.
const (
	Internal Class = iota + 1
	InternalLocal
	External
	ExternalLocal
)

// Rank orders the claims of Services to one key: the address that the cluster gave wins over those that users name.
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
	Key
	Class Class
	Rank  Rank
	// Guarded lets only the Plan's Sources in.
	Guarded bool
}

const (
	labelProxyName = "service.kubernetes.io/service-proxy-name"
	// The defaults of the API, where a stored object lacks them.
	defaultAffinity = 3 * time.Hour
)

var protocolNumbers = map[corev1.Protocol]uint8{
	"": 6, corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132,
}

// Decide returns what the node does for a Service. One that is another proxy's, or that has no address of its own, gets
// nothing.
func Decide(in Input) Plan {
	var p Plan
	if !carried(in.Service) {
		return p
	}
	d := decision{Input: in, plan: &p, keys: map[Key]bool{}, hairpins: map[netip.Addr]bool{},
		targets: targetsOf(in.Slices)}
	d.clusterIPs = d.addresses("spec.clusterIPs", clusterIPs(in.Service))
	p.ClusterIPs = d.clusterIPs
	d.sources()
	for _, six := range []bool{false, true} {
		if slices.ContainsFunc(d.clusterIPs, func(a netip.Addr) bool { return a.Is6() == six }) {
			for i := range in.Service.Spec.Ports {
				d.port(i, six)
			}
		}
	}
	d.health()
	if d.more {
		p.Problems = append(p.Problems, moreProblems)
	}
	return p
}

func carried(s *corev1.Service) bool {
	_, others := s.Labels[labelProxyName]
	_, headless := s.Labels[corev1.IsHeadlessService]
	return !others && !headless && s.Spec.Type != corev1.ServiceTypeExternalName &&
		s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone
}

func clusterIPs(s *corev1.Service) []string {
	if len(s.Spec.ClusterIPs) > 0 {
		return s.Spec.ClusterIPs
	}
	return []string{s.Spec.ClusterIP}
}

// decision is one call of Decide.
type decision struct {
	Input
	plan       *Plan
	clusterIPs []netip.Addr
	targets    map[portName][]target
	// keys are those of the ports before, hairpins those of the plan.
	keys     map[Key]bool
	hairpins map[netip.Addr]bool
	// more says that not all problems are told.
	more bool
}

// mostProblems is how many sentences there are about one Service, whatever is wrong with it.
const (
	mostProblems = 20
	moreProblems = "more of it is left out, for reasons like these"
)

func (d *decision) problem(format string, args ...any) {
	if d.more {
		return
	}
	switch text := fmt.Sprintf(format, args...); {
	case slices.Contains(d.plan.Problems, text):
	case len(d.plan.Problems) == mostProblems:
		d.more = true
	default:
		d.plan.Problems = append(d.plan.Problems, text)
	}
}

// addresses leaves out what no packet can be sent to.
func (d *decision) addresses(path string, texts []string) []netip.Addr {
	var out []netip.Addr
	for i, text := range texts {
		addr, err := netip.ParseAddr(text)
		if err != nil || !reachable(addr.Unmap()) || addr.Zone() != "" {
			d.problem("%s[%d]: %q is no address that can be reached; it is left out", path, i, text)
			continue
		}
		if addr = addr.Unmap(); !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	return out
}

func reachable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}

// nobody is a range from which no packet comes.
var nobody = netip.PrefixFrom(netip.IPv4Unspecified(), 32)

func (d *decision) sources() {
	d.plan.Guard = hash(d.Service.Namespace, d.Service.Name)
	for i, text := range d.Service.Spec.LoadBalancerSourceRanges {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			d.problem("spec.loadBalancerSourceRanges[%d]: %q is no range of addresses; it lets nobody in", i, text)
			// Were it merely left out, a Service with this range alone would be open to all.
			prefix = nobody
		}
		if prefix = prefix.Masked(); !slices.Contains(d.plan.Sources, prefix) {
			d.plan.Sources = append(d.plan.Sources, prefix)
		}
	}
}

// port decides on one port in one family.
func (d *decision) port(index int, six bool) {
	s, spec := d.Service, d.Service.Spec.Ports[index]
	number, known := protocolNumbers[spec.Protocol]
	if !known || !validPort(spec.Port) || spec.NodePort != 0 && !validPort(spec.NodePort) {
		d.problem("spec.ports[%d]: %d/%s with node port %d is no port; it is left out",
			index, spec.Port, spec.Protocol, spec.NodePort)
		return
	}
	p := Port{
		Name: spec.Name, Protocol: cmp.Or(spec.Protocol, corev1.ProtocolTCP), Six: six,
		ID:       hash(s.Namespace, s.Name, spec.Name, fmt.Sprint(number, spec.Port)),
		Number:   uint16(spec.Port),
		NodePort: uint16(spec.NodePort),
		Affinity: affinity(s),
	}
	ready := d.endpoints(p)
	p.Cluster, p.Local = d.bounded(index, ready.cluster(d.Node)), d.bounded(index, ready.local(d.Node))
	for _, e := range p.Cluster {
		if ready.here[e] || ready.perhaps[e] {
			d.hairpin(e.Addr())
		}
	}
	for _, e := range p.Local {
		d.hairpin(e.Addr())
	}
	p.Frontends = d.frontends(p, number)
	d.plan.Ports = append(d.plan.Ports, p)
}

// mostTargets is how many endpoints the ports of one Service have together in one family: each costs memory of the
// kernel and of every node's agent, and who writes a Service and its slices has to have no more than that of them.
const mostTargets = 1 << 16

// bounded leaves each port its share.
func (d *decision) bounded(index int, endpoints []netip.AddrPort) []netip.AddrPort {
	ports := len(d.Service.Spec.Ports)
	share := max(mostTargets/ports, 1)
	if len(endpoints) <= share {
		return endpoints
	}
	d.problem("spec.ports[%d]: of %d endpoints the first %d are used: a Service of %d ports may have no more of each",
		index, len(endpoints), share, ports)
	return endpoints[:share]
}

func (d *decision) hairpin(addr netip.Addr) {
	if !d.hairpins[addr] {
		d.hairpins[addr] = true
		d.plan.Hairpins = append(d.plan.Hairpins, addr)
	}
}

func validPort(n int32) bool { return n > 0 && n <= 65535 }

// hash is the same after a restart. Names are of users' choice: only a hash that nobody can steer keeps them apart.
func hash(names ...string) ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", names))
	return ID(sum[:16])
}

func affinity(s *corev1.Service) time.Duration {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		return seconds.Of(*c.ClientIP.TimeoutSeconds)
	}
	return defaultAffinity
}

// frontends are the places where a port is reached.
func (d *decision) frontends(p Port, protocol uint8) []Frontend {
	var out []Frontend
	add := func(addrs []netip.Addr, port uint16, class Class, rank Rank) {
		for _, a := range addrs {
			key := Key{a, protocol, port}
			if a.Is6() != p.Six || d.keys[key] || rank != ByClusterIP && d.kept(key, rank) {
				continue
			}
			d.keys[key] = true
			out = append(out, Frontend{
				Key: key, Class: class, Rank: rank,
				Guarded: rank == ByLoadBalancer && len(d.plan.Sources) > 0,
			})
		}
	}
	s := d.Service
	inside, outside := Internal, External
	if policy := s.Spec.InternalTrafficPolicy; policy != nil && *policy == corev1.ServiceInternalTrafficPolicyLocal {
		inside = InternalLocal
	}
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		outside = ExternalLocal
	}
	add(d.clusterIPs, p.Number, inside, ByClusterIP)
	if p.NodePort != 0 && (s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer) {
		add(d.Node.Addresses, p.NodePort, outside, ByNodePort)
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		add(d.addresses("status.loadBalancer.ingress", balancerIPs(s)), p.Number, outside, ByLoadBalancer)
	}
	add(d.addresses("spec.externalIPs", s.Spec.ExternalIPs), p.Number, outside, ByExternalIP)
	return out
}

// balancerIPs are the addresses whose packets arrive as they were sent; what comes through a proxy comes to the node
// ports.
func balancerIPs(s *corev1.Service) []string {
	var out []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		if in.IP != "" && (in.IPMode == nil || *in.IPMode == corev1.LoadBalancerIPModeVIP) {
			out = append(out, in.IP)
		}
	}
	return out
}

// health counts the addresses of this node that are ready to take new connections.
func (d *decision) health() {
	s := d.Service
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer ||
		s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal ||
		!validPort(s.Spec.HealthCheckNodePort) {
		return
	}
	// A Pod with an address of each family is one: only the Service's first family counts.
	family := discoveryv1.AddressTypeIPv4
	if len(d.clusterIPs) > 0 && d.clusterIPs[0].Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	ready := map[string]bool{}
	for _, slice := range d.Slices {
		for _, e := range slice.Endpoints {
			if slice.AddressType == family && len(e.Addresses) > 0 && isReady(e.Conditions) && onNode(e, d.Node) {
				ready[e.Addresses[0]] = true
			}
		}
	}
	d.plan.Health = &Health{Port: uint16(s.Spec.HealthCheckNodePort), Local: len(ready)}
}
