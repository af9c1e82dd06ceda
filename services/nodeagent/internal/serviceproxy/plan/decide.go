package plan

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/kit/seconds"
)

// defaultSessionAffinity is the API's default, for a stored object that lacks it.
const defaultSessionAffinity = 3 * time.Hour

// protocolNumbers are those of IP. A port without a protocol is one of TCP.
var protocolNumbers = map[corev1.Protocol]uint8{
	"": 6, corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132,
}

// ProtocolNumber returns the IP number of a protocol; false if no Service can have the protocol.
func ProtocolNumber(protocol corev1.Protocol) (uint8, bool) {
	number, known := protocolNumbers[protocol]
	return number, known
}

// Decide returns what the node does for a Service. A Service of another proxy, or without an address of its own,
// gets nothing.
func Decide(in Input) Plan {
	var p Plan
	if !proxied(in.Service) {
		return p
	}
	d := decision{Input: in, plan: &p, taken: map[Destination]bool{}, hairpins: map[netip.Addr]bool{},
		ports: portsOf(in.Slices)}
	d.clusterIPs = d.addresses("spec.clusterIPs", clusterIPs(in.Service))
	p.ClusterIPs = d.clusterIPs
	d.sourceRanges()
	for _, ipv6 := range []bool{false, true} {
		if slices.ContainsFunc(d.clusterIPs, func(a netip.Addr) bool { return a.Is6() == ipv6 }) {
			for i := range in.Service.Spec.Ports {
				d.port(i, ipv6)
			}
		}
	}
	d.healthCheck()
	if d.more {
		p.Problems = append(p.Problems, MoreProblems)
	}
	return p
}

// proxied reports whether a Service is for this proxy.
func proxied(s *corev1.Service) bool {
	_, others := s.Labels[LabelProxyName]
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
	ports      map[portName][]slicePort
	// taken are the destinations of the earlier ports, hairpins those of the plan.
	taken    map[Destination]bool
	hairpins map[netip.Addr]bool
	// more means that not all problems are reported.
	more bool
}

func (d *decision) problem(format string, args ...any) {
	if d.more {
		return
	}
	switch text := fmt.Sprintf(format, args...); {
	case slices.Contains(d.plan.Problems, text):
	case len(d.plan.Problems) == MaxProblems:
		d.more = true
	default:
		d.plan.Problems = append(d.plan.Problems, text)
	}
}

// addresses parses addresses and leaves out those that no packet can be sent to.
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

// nobody is a range that contains no client.
var nobody = netip.PrefixFrom(netip.IPv4Unspecified(), 32)

func (d *decision) sourceRanges() {
	d.plan.Guard = hash(d.Service.Namespace, d.Service.Name)
	for i, text := range d.Service.Spec.LoadBalancerSourceRanges {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			d.problem("spec.loadBalancerSourceRanges[%d]: %q is no range of addresses; it lets nobody in", i, text)
			// Leaving it out would open a Service with only this range to all.
			prefix = nobody
		}
		if prefix = prefix.Masked(); !slices.Contains(d.plan.SourceRanges, prefix) {
			d.plan.SourceRanges = append(d.plan.SourceRanges, prefix)
		}
	}
}

// port plans one port in one address family.
func (d *decision) port(index int, ipv6 bool) {
	s, spec := d.Service, d.Service.Spec.Ports[index]
	number, known := ProtocolNumber(spec.Protocol)
	if !known || !validPort(spec.Port) || spec.NodePort != 0 && !validPort(spec.NodePort) {
		d.problem("spec.ports[%d]: %d/%s with node port %d is no port; it is left out",
			index, spec.Port, spec.Protocol, spec.NodePort)
		return
	}
	p := Port{
		Name: spec.Name, Protocol: cmp.Or(spec.Protocol, corev1.ProtocolTCP), IPv6: ipv6,
		ID:              hash(s.Namespace, s.Name, spec.Name, fmt.Sprint(number, spec.Port)),
		Number:          uint16(spec.Port),
		NodePort:        uint16(spec.NodePort),
		SessionAffinity: sessionAffinity(s),
	}
	candidates := d.candidates(p)
	p.ClusterEndpoints = d.withinShare(index, candidates.cluster(d.Node))
	p.LocalEndpoints = d.withinShare(index, candidates.local(d.Node))
	for _, e := range p.ClusterEndpoints {
		if candidates.onNode[e] || candidates.perhapsOnNode[e] {
			d.hairpin(e.Addr())
		}
	}
	for _, e := range p.LocalEndpoints {
		d.hairpin(e.Addr())
	}
	p.Frontends = d.frontends(p, number)
	d.plan.Ports = append(d.plan.Ports, p)
}

// maxEndpoints bounds the endpoints of all ports of one Service in one family: each endpoint costs memory in the
// kernel and in every node's agent, and an author of a Service and its slices must not use more than that.
const maxEndpoints = 1 << 16

// withinShare cuts the endpoints of a port to its share.
func (d *decision) withinShare(index int, endpoints []netip.AddrPort) []netip.AddrPort {
	ports := len(d.Service.Spec.Ports)
	share := max(maxEndpoints/ports, 1)
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

// hash returns the same ID after a restart. Users choose the names: only a hash whose result they cannot choose
// keeps them apart.
func hash(names ...string) ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", names))
	return ID(sum[:16])
}

func sessionAffinity(s *corev1.Service) time.Duration {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		return seconds.Of(*c.ClientIP.TimeoutSeconds)
	}
	return defaultSessionAffinity
}

// frontends returns the destinations at which a port is reached.
func (d *decision) frontends(p Port, protocol uint8) []Frontend {
	var out []Frontend
	add := func(addrs []netip.Addr, port uint16, class TrafficClass, rank Rank) {
		for _, a := range addrs {
			to := Destination{a, protocol, port}
			if a.Is6() != p.IPv6 || d.taken[to] || rank != ByClusterIP && d.isKept(to, rank) {
				continue
			}
			d.taken[to] = true
			out = append(out, Frontend{
				Destination: to, Class: class, Rank: rank,
				Guarded: rank == ByLoadBalancer && len(d.plan.SourceRanges) > 0,
			})
		}
	}
	s := d.Service
	internal, external := InternalCluster, ExternalCluster
	if policy := s.Spec.InternalTrafficPolicy; policy != nil && *policy == corev1.ServiceInternalTrafficPolicyLocal {
		internal = InternalLocal
	}
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		external = ExternalLocal
	}
	add(d.clusterIPs, p.Number, internal, ByClusterIP)
	if p.NodePort != 0 && (s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer) {
		add(d.Node.Addresses, p.NodePort, external, ByNodePort)
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		add(d.addresses("status.loadBalancer.ingress", loadBalancerIPs(s)), p.Number, external, ByLoadBalancer)
	}
	add(d.addresses("spec.externalIPs", s.Spec.ExternalIPs), p.Number, external, ByExternalIP)
	return out
}

// loadBalancerIPs returns the addresses whose packets arrive unchanged; traffic through a load balancer's proxy
// comes to the node ports.
func loadBalancerIPs(s *corev1.Service) []string {
	var out []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		if in.IP != "" && (in.IPMode == nil || *in.IPMode == corev1.LoadBalancerIPModeVIP) {
			out = append(out, in.IP)
		}
	}
	return out
}

// healthCheck counts this node's ready endpoints, by their addresses.
func (d *decision) healthCheck() {
	s := d.Service
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer ||
		s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal ||
		!validPort(s.Spec.HealthCheckNodePort) {
		return
	}
	// A Pod with an address of each family counts once: only the Service's first family counts.
	family := discoveryv1.AddressTypeIPv4
	if len(d.clusterIPs) > 0 && d.clusterIPs[0].Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	ready := map[string]bool{}
	for _, slice := range d.Slices {
		for _, e := range slice.Endpoints {
			if slice.AddressType == family && len(e.Addresses) > 0 && isReady(e.Conditions) && isOnNode(e, d.Node) {
				ready[e.Addresses[0]] = true
			}
		}
	}
	d.plan.HealthCheck = &HealthCheck{NodePort: uint16(s.Spec.HealthCheckNodePort), ReadyEndpoints: len(ready)}
}
