package clusterip

import (
	"math/big"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxAddresses bounds what is given out of one range without being asked for by its number.
	maxAddresses = 1 << 20
	// DefaultRange is the ServiceCIDR that the apiserver makes of its flag.
	DefaultRange = "kubernetes"
)

// block is the addresses of a range: all but the network's own and, in IPv4, the broadcast address.
type block struct {
	prefix netip.Prefix
	// size is how many of them are given out to those who ask for none in particular.
	size int
}

func blockOf(prefix netip.Prefix) block {
	prefix = prefix.Masked()
	hostBits := prefix.Addr().BitLen() - prefix.Bits()
	if hostBits > 20 {
		return block{prefix, maxAddresses}
	}
	reserved := 1
	if prefix.Addr().Is4() {
		reserved = 2
	}
	return block{prefix, max(1<<hostBits-reserved, 0)}
}

// has reports whether a client may request the address.
func (b block) has(ip netip.Addr) bool {
	return b.prefix.Contains(ip) && ip != b.prefix.Addr() && (!ip.Is4() || b.prefix.Contains(ip.Next()))
}

// at is the address with a number, counted from 0.
func (b block) at(offset int) netip.Addr {
	sum := new(big.Int).Add(new(big.Int).SetBytes(b.prefix.Addr().AsSlice()), big.NewInt(int64(offset)+1))
	ip, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, b.prefix.Addr().BitLen()/8)))
	return ip
}

// band is how many addresses at the beginning are left to those who ask for a certain one.
func (b block) band() int {
	const smallest, largest, share = 16, 256, 16
	if b.size < smallest {
		return 0
	}
	return min(max(smallest, b.size/share), largest)
}

// pick chooses a free address: of the parts of all blocks that are for anybody, else of their bands. The search in a
// part begins at start(its size), which spreads the addresses so that one just released is not given out again at once.
func pick(blocks []block, taken map[netip.Addr]bool, start func(int) int) (netip.Addr, bool) {
	for _, banded := range []bool{false, true} {
		for _, b := range blocks {
			from, to := b.band(), b.size
			if banded {
				from, to = 0, b.band()
			}
			if to <= from {
				continue
			}
			first := start(to - from)
			for i := range to - from {
				if ip := b.at(from + (first+i)%(to-from)); !taken[ip] {
					return ip, true
				}
			}
		}
	}
	return netip.Addr{}, false
}

// usable are the ranges that addresses are given out of: those of the ServiceCIDRs that are ready and stay, and, as
// long as the default one is not made, the configured ones.
func usable(ranges []networkingv1.ServiceCIDR, configured []netip.Prefix) []netip.Prefix {
	var found []netip.Prefix
	byDefault := true
	for i := range ranges {
		r := &ranges[i]
		byDefault = byDefault && r.Name != DefaultRange
		fresh := r.Name == DefaultRange && len(r.Status.Conditions) == 0
		if r.DeletionTimestamp == nil && (fresh || isReady(r)) {
			found = append(found, prefixes(r)...)
		}
	}
	if byDefault {
		found = append(slices.Clone(configured), found...)
	}
	return found
}

func isReady(r *networkingv1.ServiceCIDR) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == networkingv1.ServiceCIDRConditionReady && c.Status == metav1.ConditionTrue
	})
}

func prefixes(r *networkingv1.ServiceCIDR) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range r.Spec.CIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			all = append(all, prefix.Masked())
		}
	}
	return all
}
