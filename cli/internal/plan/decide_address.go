package plan

import (
	"net/netip"
	"slices"
)

// AdvertiseInput is what the address depends on at which Pods reach the machine.
type AdvertiseInput struct {
	// Bind is where the apiserver listens, Recorded the address of an earlier run.
	Bind, Recorded netip.Addr
	// Addresses are the machine's own without the loopback ones, the best one first.
	Addresses []netip.Addr
	// Between is the network between the nodes, of which the machine has the first address once there are nodes.
	Between netip.Prefix
	Nodes   int
}

// DecideAdvertise keeps the address of an earlier run while the machine has it. A machine without any network still has
// the mesh's: no Pod reaches its loopback address.
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
