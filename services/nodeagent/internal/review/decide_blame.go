package review

import (
	"net/netip"
	"time"
)

// How many questions of one network address the API may answer with no: refusals at once, and then one every
// refusalEvery.
const (
	refusals     = 20
	refusalEvery = time.Second
)

// blame is the refused and current questions of an address: it fades with time. The zero value is none.
type blame struct {
	// until is when nothing of it is left.
	until time.Time
}

// with returns the blame with one more question; false if that is too many.
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

// without takes back a question that was answered with yes.
func (b blame) without() blame { return blame{b.until.Add(-refusalEvery)} }

// neighbours returns the addresses that share the blame of one: a machine may use any address of its IPv6 network.
func neighbours(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // without an address it is the zero network, which also has its share
	return prefix
}
