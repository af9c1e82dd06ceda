package table

import (
	"slices"

	"github.com/google/nftables"
)

// The maps that lead to chains.
const (
	setClasses = "classes" // class -> chain
	setPicks   = "picks"   // number of endpoints, affinity, scope -> chain
)

// setOf describes a set as the kernel has to create it.
func (t Table) setOf(name string, ipv6 bool) *nftables.Set {
	addr := nftables.TypeIPAddr
	if ipv6 {
		addr = nftables.TypeIP6Addr
	}
	id, number := nftables.TypeIP6Addr, nftables.TypeMark // an ID has the size of an IPv6 address
	proto, port := nftables.TypeInetProto, nftables.TypeInetService
	join := nftables.MustConcatSetType
	s := &nftables.Set{Table: t.ref(), Name: family(name, ipv6)}
	value := func(v nftables.SetDatatype) { s.IsMap, s.DataType = true, v }
	switch name {
	case setPorts:
		s.KeyType = join(addr, proto, port)
		value(join(id, number))
	case setPools:
		s.KeyType = join(id, number)
		value(join(number, number, number))
	case setEndpoints:
		s.KeyType = join(id, number)
		value(join(addr, port))
	case setLive:
		s.KeyType = join(id, number, addr, port)
	case setAffinity:
		s.KeyType = join(addr, id)
		s.HasTimeout, s.Dynamic, s.Size = true, true, affinitySize
		value(join(addr, port))
	case setClusters:
		s.KeyType = addr
	case setRejected:
		s.KeyType = join(addr, proto, port)
	case setGuarded:
		s.KeyType = join(addr, proto, port)
		value(id)
	case setAllowed:
		s.KeyType = join(addr, number, id)
	case setHairpin:
		s.KeyType = join(addr, addr)
	case setClasses:
		s.KeyType = number
		value(nftables.TypeVerdict)
	case setPicks:
		s.KeyType = join(number, number, number)
		value(nftables.TypeVerdict)
	}
	return s
}

// affinitySize is how many clients of Services keep their endpoint; further ones get a random one each time.
const affinitySize = 1 << 18

// followed are the sets whose elements Changes lists.
var followed = []string{setPorts, setPools, setEndpoints, setLive, setClusters, setRejected, setGuarded, setAllowed,
	setHairpin}

// led are the maps that lead to chains, and the map that the kernel writes.
var led = []string{setClasses, setPicks, setAffinity}

// Sets returns all sets of the table.
func (t Table) Sets() []*nftables.Set {
	var out []*nftables.Set
	for _, name := range slices.Concat(followed, led) {
		out = append(out, t.setOf(name, false), t.setOf(name, true))
	}
	return out
}
