package review

import (
	"net/netip"
	"time"
)

// How many questions of one network address the API may answer with no: so many at once, and then one in each time.
const (
	refusals     = 20
	refusalEvery = time.Second
)

// blame is what an address has had refused, or is asking for: it fades with time. The zero value is none.
type blame struct {
	// until is when nothing is left of it.
	until time.Time
}

// with returns the blame with one question more; false if there are too many.
func (b blame) with(now time.Time) (blame, bool) {
	from := b.until
	if from.Before(now) {
		from = now
	}
	if from.Sub(now) > (refusals-1)*refusalEvery {
		return b, false
	}
	return blame{from.Add(refusalEvery)}, true
}

// without takes a question back that was answered with yes.
func (b blame) without() blame { return blame{b.until.Add(-refusalEvery)} }

// neighbours are the addresses that share the blame of one: a machine may take any of an IPv6 network.
func neighbours(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // of no address it is no network, which has its share too
	return prefix
}
