package plan

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// candidates are the endpoints of one port that may be used, grouped by their conditions.
type candidates struct {
	// ready endpoints take new connections; terminating ones are shutting down and still serve.
	ready, terminating []candidate
	// onNode are those on this node, perhapsOnNode those that name no node.
	onNode, perhapsOnNode map[netip.AddrPort]bool
}

type candidate struct {
	netip.AddrPort
	hints *discoveryv1.EndpointHints
}

func isReady(c discoveryv1.EndpointConditions) bool { return c.Ready == nil || *c.Ready }

// isTerminating reports whether an endpoint is shutting down and still serves.
func isTerminating(c discoveryv1.EndpointConditions) bool {
	return c.Terminating != nil && *c.Terminating && (c.Serving == nil || *c.Serving)
}

func isOnNode(e discoveryv1.Endpoint, n Node) bool { return e.NodeName != nil && *e.NodeName == n.Name }

// portName identifies ports of slices. An absent name counts as the empty one.
type portName struct {
	name     string
	protocol corev1.Protocol
	kind     discoveryv1.AddressType
}

// slicePort is a port of a slice.
type slicePort struct {
	slice *discoveryv1.EndpointSlice
	index int
	port  int32
}

// portsOf finds, in each slice, the first port of each name that has a number.
func portsOf(all []*discoveryv1.EndpointSlice) map[portName][]slicePort {
	out := map[portName][]slicePort{}
	for _, slice := range all {
		for i, port := range slice.Ports {
			key := portName{"", corev1.ProtocolTCP, slice.AddressType}
			if port.Name != nil {
				key.name = *port.Name
			}
			if port.Protocol != nil {
				key.protocol = *port.Protocol
			}
			known := out[key]
			if port.Port != nil && (len(known) == 0 || known[len(known)-1].slice != slice) {
				out[key] = append(known, slicePort{slice, i, *port.Port})
			}
		}
	}
	return out
}

// candidates gathers those of a port from all slices.
func (d *decision) candidates(p Port) candidates {
	out := candidates{onNode: map[netip.AddrPort]bool{}, perhapsOnNode: map[netip.AddrPort]bool{}}
	kind := discoveryv1.AddressTypeIPv4
	if p.IPv6 {
		kind = discoveryv1.AddressTypeIPv6
	}
	for _, t := range d.ports[portName{p.Name, p.Protocol, kind}] {
		if !validPort(t.port) {
			d.problem("EndpointSlice %s: ports[%d].port: %d must be from 1 to 65535; its endpoints are left out",
				t.slice.Name, t.index, t.port)
			continue
		}
		for i, e := range t.slice.Endpoints {
			ready := isReady(e.Conditions)
			if !ready && !isTerminating(e.Conditions) {
				continue
			}
			addr, ok := d.endpointAddress(t.slice, i, p.IPv6)
			if !ok {
				continue
			}
			target := netip.AddrPortFrom(addr, uint16(t.port))
			out.onNode[target] = out.onNode[target] || isOnNode(e, d.Node)
			out.perhapsOnNode[target] = out.perhapsOnNode[target] || e.NodeName == nil
			if ready {
				out.ready = append(out.ready, candidate{target, e.Hints})
			} else {
				out.terminating = append(out.terminating, candidate{target, e.Hints})
			}
		}
	}
	return out
}

// endpointAddress returns the first address, the only one that has a meaning.
func (d *decision) endpointAddress(slice *discoveryv1.EndpointSlice, i int, ipv6 bool) (netip.Addr, bool) {
	if len(slice.Endpoints[i].Addresses) == 0 {
		return netip.Addr{}, false
	}
	text := slice.Endpoints[i].Addresses[0]
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is6() != ipv6 || addr.Zone() != "" || addr.Is4In6() || !reachable(addr) {
		d.problem("EndpointSlice %s: endpoints[%d].addresses[0]: %q is no %s address of an endpoint; it is left out",
			slice.Name, i, text, slice.AddressType)
		return netip.Addr{}, false
	}
	return addr, true
}

// cluster returns the endpoints for connections that may go to any node.
func (c candidates) cluster(n Node) []netip.AddrPort {
	if len(c.ready) == 0 {
		return sorted(c.terminating, func(candidate) bool { return true })
	}
	return sorted(c.ready, hinted(c.ready, n))
}

// local returns the endpoints for connections that must stay on the node.
func (c candidates) local(n Node) []netip.AddrPort {
	onNode := func(e candidate) bool { return c.onNode[e.AddrPort] }
	if out := sorted(c.ready, onNode); len(out) > 0 {
		return out
	}
	return sorted(c.terminating, onNode)
}

// hinted selects the ready endpoints that this node uses. Hints count only if every endpoint has some, and some are
// for this node or its zone: otherwise the hints are incomplete, or following them would leave no endpoint.
func hinted(ready []candidate, n Node) func(candidate) bool {
	forNode := func(c candidate) bool {
		return c.hints != nil && slices.ContainsFunc(c.hints.ForNodes,
			func(h discoveryv1.ForNode) bool { return h.Name == n.Name })
	}
	forZone := func(c candidate) bool {
		return n.Zone != "" && c.hints != nil && slices.ContainsFunc(c.hints.ForZones,
			func(h discoveryv1.ForZone) bool { return h.Name == n.Zone })
	}
	noNodes := func(c candidate) bool { return c.hints == nil || len(c.hints.ForNodes) == 0 }
	noZones := func(c candidate) bool { return c.hints == nil || len(c.hints.ForZones) == 0 }
	switch {
	case !slices.ContainsFunc(ready, noNodes) && slices.ContainsFunc(ready, forNode):
		return forNode
	case !slices.ContainsFunc(ready, noZones) && slices.ContainsFunc(ready, forZone):
		return forZone
	}
	return func(candidate) bool { return true }
}

func sorted(from []candidate, which func(candidate) bool) []netip.AddrPort {
	var out []netip.AddrPort
	for _, c := range from {
		if which(c) {
			out = append(out, c.AddrPort)
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out) // an endpoint may be named several times
}
