package table

import (
	"encoding/binary"
	"net/netip"
	"time"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// The sets and maps that hold what changes with Services; there is each of them for both families.
const (
	setPorts     = "ports"       // address, protocol and port -> port's ID and class
	setPools     = "pools"       // port's ID and scope -> how many endpoints, affinity, scope
	setEndpoints = "endpoints"   // port's ID and place -> address and port
	setLive      = "live"        // port's ID, scope, address and port: what clients may keep to
	setAffinity  = "affinity"    // client and port's ID -> address and port; the kernel's own
	setClusters  = "cluster-ips" // addresses of Services
	setRejected  = "rejected"    // address, protocol and port without any endpoint
	setGuarded   = "guarded"     // address, protocol and port -> Guard
	setAllowed   = "allowed"     // network, its length and Guard
	setHairpin   = "hairpin"     // address twice: a Pod that reaches itself
)

// A port has two pools of endpoints, those of the traffic policies. A place of an endpoint is its number in the pool
// and the pool's scope.
const (
	scopeCluster uint32 = 0
	scopeLocal   uint32 = 1 << 31
)

// Element is one entry of a set or map, encoded as the kernel keeps it.
type Element struct{ Set, Key, Value string }

// Pick is a way to choose among the endpoints of a pool, which the kernel needs a chain for.
type Pick struct {
	IPv6  bool
	Count uint32
	// Affinity is how long a client keeps its endpoint; zero if it does not.
	Affinity time.Duration
	Scope    uint32
}

// PrefixLength is a number of bits by which allowed sources are compared.
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

// word is a number as the kernel's registers have it.
func word(n uint32) string { return string(binary.NativeEndian.AppendUint32(nil, n)) }

func portWord(n uint16) string { return string([]byte{byte(n >> 8), byte(n), 0, 0}) }

func encodeDestination(d plan.Destination) string {
	return string(d.Addr.AsSlice()) + string([]byte{d.Protocol, 0, 0, 0}) + portWord(d.Port)
}

func encodeEndpoint(e netip.AddrPort) string { return string(e.Addr().AsSlice()) + portWord(e.Port()) }

// poolsInUse tells which of a port's pools its frontends lead to.
func poolsInUse(p *plan.Port, holds func(plan.Destination) bool) (cluster, local bool) {
	for _, f := range p.Frontends {
		if holds(f.Destination) {
			cluster = cluster || f.Class != plan.InternalLocal
			local = local || f.Class == plan.InternalLocal || f.Class == plan.ExternalLocal
		}
	}
	return cluster, local
}

// eachPool calls use for each pool of the port that is in use.
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

// planElements calls put for everything that a plan wants in the kernel's sets. A destination that another Service
// holds is left out.
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

// planPicks calls put for each way to choose that the plan needs.
func planPicks(p *plan.Plan, holds func(plan.Destination) bool, put func(Pick)) {
	for i := range p.Ports {
		port := &p.Ports[i]
		eachPool(port, holds, func(scope uint32, pool []netip.AddrPort) {
			put(Pick{port.IPv6, uint32(len(pool)), port.SessionAffinity, scope})
		})
	}
}

// keepPlaces returns the wanted endpoints such that each that had a place keeps it if it can: then a change touches
// only what came, what went, and as many at the end.
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
