package serviceproxy

import (
	"encoding/binary"
	"net/netip"
	"time"
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

// A place of an endpoint is its number in the pool and the pool's scope.
const (
	scopeCluster uint32 = 0
	scopeLocal   uint32 = 1 << 31
)

// Element is one entry of a set or map, encoded as the kernel keeps it.
type Element struct{ Set, Key, Value string }

// Pick is a way to choose among endpoints, which the kernel needs a chain for.
type Pick struct {
	Six      bool
	Count    uint32
	Affinity time.Duration
	Scope    uint32
}

// Length is a number of bits by which allowed sources are compared.
type Length struct {
	Six  bool
	Bits int
}

func family(name string, six bool) string {
	if six {
		return name + "6"
	}
	return name + "4"
}

// word is a number as the kernel's registers have it.
func word(n uint32) string { return string(binary.NativeEndian.AppendUint32(nil, n)) }

func portWord(n uint16) string { return string([]byte{byte(n >> 8), byte(n), 0, 0}) }

func (k Key) encode() string {
	return string(k.Addr.AsSlice()) + string([]byte{k.Protocol, 0, 0, 0}) + portWord(k.Port)
}

func encode(e netip.AddrPort) string { return string(e.Addr().AsSlice()) + portWord(e.Port()) }

// uses tells which of a port's pools its frontends lead to.
func (p *Port) uses(held func(Key) bool) (cluster, local bool) {
	for _, f := range p.Frontends {
		if held(f.Key) {
			cluster = cluster || f.Class != InternalLocal
			local = local || f.Class == InternalLocal || f.Class == ExternalLocal
		}
	}
	return cluster, local
}

// scopes calls use for each pool of the port that is in use.
func (p *Port) scopes(held func(Key) bool, use func(scope uint32, pool []netip.AddrPort)) {
	if len(p.Cluster) == 0 {
		return
	}
	cluster, local := p.uses(held)
	if cluster {
		use(scopeCluster, p.Cluster)
	}
	if local {
		use(scopeLocal, p.Local)
	}
}

// elements calls put for everything that a plan wants in the kernel's sets. A key that another Service holds is left
// out.
func (p *Plan) elements(held func(Key) bool, put func(Element)) {
	for _, a := range p.ClusterIPs {
		put(Element{family(setClusters, a.Is6()), string(a.AsSlice()), ""})
	}
	for _, a := range p.Hairpins {
		put(Element{family(setHairpin, a.Is6()), string(a.AsSlice()) + string(a.AsSlice()), ""})
	}
	guarded := false
	for i := range p.Ports {
		port := &p.Ports[i]
		port.pools(held, put)
		for _, f := range port.Frontends {
			if !held(f.Key) {
				continue
			}
			switch key := f.encode(); {
			case len(port.Cluster) > 0:
				put(Element{family(setPorts, port.Six), key, string(port.ID[:]) + word(uint32(f.Class))})
			case f.Rank != ByClusterIP:
				put(Element{family(setRejected, port.Six), key, ""})
			}
			if f.Guarded {
				guarded = true
				put(Element{family(setGuarded, port.Six), f.encode(), string(p.Guard[:])})
			}
		}
	}
	if guarded {
		for _, s := range p.Sources {
			put(Element{family(setAllowed, s.Addr().Is6()),
				string(s.Addr().AsSlice()) + word(uint32(s.Bits())) + string(p.Guard[:]), ""})
		}
	}
}

func (p *Port) pools(held func(Key) bool, put func(Element)) {
	id := string(p.ID[:])
	p.scopes(held, func(scope uint32, pool []netip.AddrPort) {
		put(Element{family(setPools, p.Six), id + word(scope),
			word(uint32(len(pool))) + word(uint32(p.Affinity.Seconds())) + word(scope)})
		for i, e := range pool {
			put(Element{family(setEndpoints, p.Six), id + word(scope|uint32(i)), encode(e)})
			if p.Affinity > 0 {
				put(Element{family(setLive, p.Six), id + word(scope) + encode(e), ""})
			}
		}
	})
}

// picks calls put for each way to choose that the plan needs.
func (p *Plan) picks(held func(Key) bool, put func(Pick)) {
	for i := range p.Ports {
		port := &p.Ports[i]
		port.scopes(held, func(scope uint32, pool []netip.AddrPort) {
			put(Pick{port.Six, uint32(len(pool)), port.Affinity, scope})
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
