package table

import (
	"encoding/binary"
	"net/netip"
	"time"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// The sets and maps whose contents change with Services; each exists for both families.
const (
	setPorts     = "ports"       // address, protocol and port -> port ID and class
	setPools     = "pools"       // port ID and scope -> number of endpoints, affinity, scope
	setEndpoints = "endpoints"   // port ID and place -> address and port
	setLive      = "live"        // port ID, scope, address and port: what clients may keep
	setAffinity  = "affinity"    // client and port ID -> address and port; the kernel writes it
	setClusters  = "cluster-ips" // addresses of Services
	setRejected  = "rejected"    // address, protocol and port without endpoints
	setGuarded   = "guarded"     // address, protocol and port -> Guard
	setAllowed   = "allowed"     // network, its length and Guard
	setHairpin   = "hairpin"     // address twice: a Pod that connects to itself
)

// A port has two pools of endpoints, one for each traffic policy. The place of an endpoint is its number in the
// pool combined with the pool's scope.
const (
	scopeCluster uint32 = 0
	scopeLocal   uint32 = 1 << 31
)

// Element is one entry of a set or map, encoded as the kernel keeps it.
type Element struct{ Set, Key, Value string }

// Pick is a way to choose among the endpoints of a pool; the kernel needs a chain for each.
type Pick struct {
	IPv6  bool
	Count uint32
	// Affinity is how long a client keeps its endpoint; zero if it does not.
	Affinity time.Duration
	Scope    uint32
}

// PrefixLength is a number of bits in which sources are compared with allowed ranges.
type PrefixLength struct {
	IPv6 bool
	Bits int
}

func family(name string, ipv6 bool) string {
	if ipv6 {
		return name + "6"
	}
	return name + "4"
}

// word encodes a number as the kernel's registers hold it.
func word(n uint32) string { return string(binary.NativeEndian.AppendUint32(nil, n)) }

func portWord(n uint16) string { return string([]byte{byte(n >> 8), byte(n), 0, 0}) }

func encodeDestination(d plan.Destination) string {
	return string(d.Addr.AsSlice()) + string([]byte{d.Protocol, 0, 0, 0}) + portWord(d.Port)
}

func encodeEndpoint(e netip.AddrPort) string { return string(e.Addr().AsSlice()) + portWord(e.Port()) }

// poolsInUse returns which of a port's pools its frontends use.
func poolsInUse(p *plan.Port, holds func(plan.Destination) bool) (cluster, local bool) {
	for _, f := range p.Frontends {
		if holds(f.Destination) {
			cluster = cluster || f.Class != plan.InternalLocal
			local = local || f.Class == plan.InternalLocal || f.Class == plan.ExternalLocal
		}
	}
	return cluster, local
}

// eachPool calls use for each used pool of the port.
func eachPool(p *plan.Port, holds func(plan.Destination) bool, use func(scope uint32, pool []netip.AddrPort)) {
	if len(p.ClusterEndpoints) == 0 {
		return
	}
	cluster, local := poolsInUse(p, holds)
	if cluster {
		use(scopeCluster, p.ClusterEndpoints)
	}
	if local {
		use(scopeLocal, p.LocalEndpoints)
	}
}

// planElements calls put for each element that a plan needs in the kernel's sets. It leaves out destinations that
// another Service holds.
func planElements(p *plan.Plan, holds func(plan.Destination) bool, put func(Element)) {
	for _, a := range p.ClusterIPs {
		put(Element{family(setClusters, a.Is6()), string(a.AsSlice()), ""})
	}
	for _, a := range p.Hairpins {
		put(Element{family(setHairpin, a.Is6()), string(a.AsSlice()) + string(a.AsSlice()), ""})
	}
	guarded := false
	for i := range p.Ports {
		port := &p.Ports[i]
		poolElements(port, holds, put)
		for _, f := range port.Frontends {
			if !holds(f.Destination) {
				continue
			}
			switch key := encodeDestination(f.Destination); {
			case len(port.ClusterEndpoints) > 0:
				put(Element{family(setPorts, port.IPv6), key, string(port.ID[:]) + word(uint32(f.Class))})
			case f.Rank != plan.ByClusterIP:
				put(Element{family(setRejected, port.IPv6), key, ""})
			}
			if f.Guarded {
				guarded = true
				put(Element{family(setGuarded, port.IPv6), encodeDestination(f.Destination), string(p.Guard[:])})
			}
		}
	}
	if guarded {
		for _, s := range p.SourceRanges {
			put(Element{family(setAllowed, s.Addr().Is6()),
				string(s.Addr().AsSlice()) + word(uint32(s.Bits())) + string(p.Guard[:]), ""})
		}
	}
}

func poolElements(p *plan.Port, holds func(plan.Destination) bool, put func(Element)) {
	id := string(p.ID[:])
	eachPool(p, holds, func(scope uint32, pool []netip.AddrPort) {
		put(Element{family(setPools, p.IPv6), id + word(scope),
			word(uint32(len(pool))) + word(uint32(p.SessionAffinity.Seconds())) + word(scope)})
		for i, e := range pool {
			put(Element{family(setEndpoints, p.IPv6), id + word(scope|uint32(i)), encodeEndpoint(e)})
			if p.SessionAffinity > 0 {
				put(Element{family(setLive, p.IPv6), id + word(scope) + encodeEndpoint(e), ""})
			}
		}
	})
}

// planPicks calls put for each Pick that the plan needs.
func planPicks(p *plan.Plan, holds func(plan.Destination) bool, put func(Pick)) {
	for i := range p.Ports {
		port := &p.Ports[i]
		eachPool(port, holds, func(scope uint32, pool []netip.AddrPort) {
			put(Pick{port.IPv6, uint32(len(pool)), port.SessionAffinity, scope})
		})
	}
}

// keepPlaces returns the wanted endpoints in an order in which each that had a place keeps it if possible: then a
// change touches only the added and removed endpoints, and as many at the end.
func keepPlaces(had, want []netip.AddrPort) []netip.AddrPort {
	missing := make(map[netip.AddrPort]bool, len(want))
	for _, e := range want {
		missing[e] = true
	}
	out := make([]netip.AddrPort, len(want))
	for i, e := range had {
		if i < len(out) && missing[e] {
			out[i] = e
			delete(missing, e)
		}
	}
	free := 0
	for _, e := range want {
		if !missing[e] {
			continue
		}
		for out[free].IsValid() {
			free++
		}
		out[free] = e
		delete(missing, e)
	}
	return out
}
