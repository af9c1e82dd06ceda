package serviceproxy

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Flows are the endpoints that UDP flows to each key may go on with. A UDP flow has no end that the kernel could see:
// one that leads elsewhere has to be forgotten.
type Flows map[Key][]netip.AddrPort

// stale returns what the flows to a Service may go on with, if some may not.
func stale(old, now Plan) Flows {
	out := Flows{}
	for i := range old.Ports {
		before := &old.Ports[i]
		if before.Protocol != corev1.ProtocolUDP {
			continue
		}
		after := now.port(before.ID, before.Six)
		for _, f := range before.Frontends {
			if left := after.endpoints(f.Key); lost(before.endpoints(f.Key), left) {
				out[f.Key] = left
			}
		}
	}
	for i := range now.Ports {
		after := &now.Ports[i]
		if after.Protocol != corev1.ProtocolUDP {
			continue
		}
		// What was sent before the key had endpoints flows past them.
		for _, f := range after.Frontends {
			if before := old.port(after.ID, after.Six); len(before.endpoints(f.Key)) == 0 &&
				len(after.endpoints(f.Key)) > 0 {
				out[f.Key] = after.endpoints(f.Key)
			}
		}
	}
	return out
}

func (p *Plan) port(id ID, six bool) *Port {
	for i := range p.Ports {
		if p.Ports[i].ID == id && p.Ports[i].Six == six {
			return &p.Ports[i]
		}
	}
	return &Port{}
}

// endpoints are those to which connections to a key may lead.
func (p *Port) endpoints(key Key) []netip.AddrPort {
	for _, f := range p.Frontends {
		if f.Key == key {
			switch f.Class {
			case InternalLocal:
				return p.Local
			case ExternalLocal:
				return append(slices.Clone(p.Cluster), p.Local...)
			}
			return p.Cluster
		}
	}
	return nil
}

func lost(before, after []netip.AddrPort) bool {
	return slices.ContainsFunc(before, func(e netip.AddrPort) bool { return !slices.Contains(after, e) })
}
