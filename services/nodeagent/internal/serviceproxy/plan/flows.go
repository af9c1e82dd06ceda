package plan

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Flows are the endpoints with which UDP flows to each destination may go on. The kernel cannot see a UDP flow end:
// it has to be made to forget one that leads elsewhere.
type Flows map[Destination][]netip.AddrPort

// StaleFlows returns the destinations of a Service that have flows to be forgotten, with the endpoints that flows
// may keep.
func StaleFlows(old, now Plan) Flows {
	out := Flows{}
	for i := range old.Ports {
		before := &old.Ports[i]
		if before.Protocol != corev1.ProtocolUDP {
			continue
		}
		after := now.port(before.ID, before.IPv6)
		for _, f := range before.Frontends {
			if left := after.endpointsAt(f.Destination); anyMissing(before.endpointsAt(f.Destination), left) {
				out[f.Destination] = left
			}
		}
	}
	for i := range now.Ports {
		after := &now.Ports[i]
		if after.Protocol != corev1.ProtocolUDP {
			continue
		}
		// Packets sent before the destination had endpoints have left flows that lead past the endpoints.
		for _, f := range after.Frontends {
			if before := old.port(after.ID, after.IPv6); len(before.endpointsAt(f.Destination)) == 0 &&
				len(after.endpointsAt(f.Destination)) > 0 {
				out[f.Destination] = after.endpointsAt(f.Destination)
			}
		}
	}
	return out
}

// UDPFlows returns the flows of all UDP ports of the plan.
func (p *Plan) UDPFlows() Flows {
	out := Flows{}
	for i := range p.Ports {
		port := &p.Ports[i]
		if port.Protocol != corev1.ProtocolUDP {
			continue
		}
		for _, f := range port.Frontends {
			out[f.Destination] = port.endpointsAt(f.Destination)
		}
	}
	return out
}

// endpointsAt returns the endpoints to which connections to a destination may go.
func (p *Port) endpointsAt(to Destination) []netip.AddrPort {
	for _, f := range p.Frontends {
		if f.Destination == to {
			switch f.Class {
			case InternalLocal:
				return p.LocalEndpoints
			case ExternalLocal:
				return append(slices.Clone(p.ClusterEndpoints), p.LocalEndpoints...)
			}
			return p.ClusterEndpoints
		}
	}
	return nil
}

func anyMissing(before, after []netip.AddrPort) bool {
	return slices.ContainsFunc(before, func(e netip.AddrPort) bool { return !slices.Contains(after, e) })
}
