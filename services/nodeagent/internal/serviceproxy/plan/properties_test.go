package plan

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

// eligible decides, in the API's own words and slowly, whether a port's connections may go to an endpoint.
func eligible(s *corev1.Service, all []*discoveryv1.EndpointSlice, p Port, target netip.AddrPort, local bool) bool {
	type view struct{ ready, draining, here, zone, node, hasZone, hasNode bool }
	var views []view
	var of []netip.AddrPort
	for _, slice := range all {
		for _, port := range slice.Ports {
			protocol := corev1.ProtocolTCP
			if port.Protocol != nil {
				protocol = *port.Protocol
			}
			if *port.Name != p.Name || protocol != p.Protocol {
				continue
			}
			for _, e := range slice.Endpoints {
				c := e.Conditions
				serving := c.Serving == nil || *c.Serving
				v := view{ready: c.Ready == nil || *c.Ready, draining: serving && c.Terminating != nil &&
					*c.Terminating,
					here: e.NodeName != nil && *e.NodeName == testNode.Name}
				if e.Hints != nil {
					v.hasZone, v.hasNode = len(e.Hints.ForZones) > 0, len(e.Hints.ForNodes) > 0
					for _, h := range e.Hints.ForZones {
						v.zone = v.zone || h.Name == testNode.Zone
					}
					for _, h := range e.Hints.ForNodes {
						v.node = v.node || h.Name == testNode.Name
					}
				}
				views = append(views, v)
				of = append(of, netip.AddrPortFrom(netip.MustParseAddr(e.Addresses[0]), uint16(*port.Port)))
			}
		}
	}
	any := func(want func(view) bool) bool { return slices.ContainsFunc(views, want) }
	is := func(want func(view) bool) bool {
		for i, v := range views {
			if of[i] == target && want(v) {
				return true
			}
		}
		return false
	}
	if local {
		// An address may be named twice; it is on this node if one of its names says so.
		here := func(i int) bool {
			for k, o := range views {
				if of[k] == of[i] && o.here && (o.ready || o.draining) {
					return true
				}
			}
			return false
		}
		readyHere := false
		for i, v := range views {
			readyHere = readyHere || v.ready && here(i)
		}
		at := slices.Index(of, target)
		return at >= 0 && here(at) && is(func(v view) bool { return v.ready || !readyHere && v.draining })
	}
	if !any(func(v view) bool { return v.ready }) {
		return is(func(v view) bool { return v.draining })
	}
	unhinted := func(has func(view) bool) bool { return any(func(v view) bool { return v.ready && !has(v) }) }
	switch {
	case !unhinted(func(v view) bool { return v.hasNode }) && any(func(v view) bool { return v.ready && v.node }):
		return is(func(v view) bool { return v.ready && v.node })
	case !unhinted(func(v view) bool { return v.hasZone }) && any(func(v view) bool { return v.ready && v.zone }):
		return is(func(v view) bool { return v.ready && v.zone })
	}
	return is(func(v view) bool { return v.ready })
}

// Every endpoint that is programmed is eligible, and every eligible one is programmed.
func TestEndpointsAreEligible(t *testing.T) {
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, all := servicetest.Random(r, "web", 1)
		for _, p := range decide(s, all...).Ports {
			for local, pool := range map[bool][]netip.AddrPort{false: p.ClusterEndpoints, true: p.LocalEndpoints} {
				for host := range 5 {
					for _, port := range []uint16{8080, 8081, 5353} {
						target := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 1, byte(host)}), port)
						want := eligible(s, all, p, target, local)
						if got := slices.Contains(pool, target); got != want {
							t.Fatalf("seed %d, port %s, local %v: %s is programmed: %v, want %v", seed, p.Name, local,
								target, got, want)
						}
					}
				}
			}
		}
	}
}
