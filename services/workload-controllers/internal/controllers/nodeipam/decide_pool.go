package nodeipam

import (
	"net/netip"
)

// pool is one cluster range, cut into shares of equal size, with the number of users of each.
type pool struct {
	cluster netip.Prefix
	bits    int
	// uses counts the nodes that use a share or a part of it: ranges assigned by others may overlap.
	uses []int32
	free int
	// next is where the search for a free share begins: a returned share is reused as late as possible, so that packets
	// still sent to its last owner reach no one.
	next int
}

func newPool(cluster netip.Prefix, bits int) *pool {
	shares := 1 << (bits - cluster.Bits())
	return &pool{cluster: cluster, bits: bits, uses: make([]int32, shares), free: shares}
}

// offer returns the next free share, or the zero Prefix if none is free. It does not take it.
func (p *pool) offer() netip.Prefix {
	if p.free == 0 {
		return netip.Prefix{}
	}
	at := p.next
	for p.uses[at] > 0 {
		at = (at + 1) % len(p.uses)
	}
	return p.share(at)
}

// take counts a range as in use: a share, several shares or a part of one. It ignores a range outside the pool.
func (p *pool) take(prefix netip.Prefix) {
	first, count := p.within(prefix)
	for at := first; at < first+count; at++ {
		if p.uses[at]++; p.uses[at] == 1 {
			p.free--
			p.next = (at + 1) % len(p.uses)
		}
	}
}

// giveBack undoes take, and reports whether a share has become free.
func (p *pool) giveBack(prefix netip.Prefix) (freed bool) {
	first, count := p.within(prefix)
	for at := first; at < first+count; at++ {
		if p.uses[at]--; p.uses[at] == 0 {
			p.free++
			freed = true
		}
	}
	return freed
}

// share is the one at an index.
func (p *pool) share(at int) netip.Prefix {
	address := p.cluster.Addr().AsSlice()
	for bit := range p.bits - p.cluster.Bits() {
		if at>>bit&1 == 1 {
			place := p.bits - 1 - bit
			address[place/8] |= 0x80 >> (place % 8)
		}
	}
	made, _ := netip.AddrFromSlice(address) // the length is valid
	return netip.PrefixFrom(made, p.bits)
}

// within returns which shares a range overlaps.
func (p *pool) within(prefix netip.Prefix) (first, count int) {
	switch {
	case !p.cluster.Overlaps(prefix):
		return 0, 0
	case prefix.Bits() <= p.cluster.Bits():
		return 0, len(p.uses)
	}
	address := prefix.Masked().Addr().AsSlice()
	for place := p.cluster.Bits(); place < p.bits; place++ {
		first <<= 1
		if address[place/8]&(0x80>>(place%8)) != 0 {
			first |= 1
		}
	}
	return first, 1 << max(p.bits-prefix.Bits(), 0)
}
