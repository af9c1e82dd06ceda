package plan

import (
	"net/netip"
	"slices"
)

// AdvertiseInput holds what DecideAdvertise chooses from: the address at which Pods reach the machine.
type AdvertiseInput struct {
	// Bind is the address at which the apiserver listens; Recorded is the address that an earlier run chose.
	Bind, Recorded netip.Addr
	// Addresses are the machine's addresses except loopback, the best one first.
	Addresses []netip.Addr
	// Between is the network between the nodes; the machine has its first address once there are nodes.
	Between netip.Prefix
	Nodes   int
}

// DecideAdvertise keeps the address of an earlier run while the machine has it. A machine without a network uses
// its address in the network between the nodes, because Pods cannot reach its loopback address.
func DecideAdvertise(in AdvertiseInput) netip.Addr {
	switch {
	case slices.Contains(in.Addresses, in.Recorded):
		return in.Recorded
	case !in.Bind.IsUnspecified():
		return in.Bind
	case len(in.Addresses) > 0:
		return in.Addresses[0]
	case in.Nodes > 0:
		return FirstAddress(in.Between)
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
