package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/netdump"
)

// claimTable is a routing table that no rule names, so that it routes no packet.
const claimTable = 7575

// ClaimRanges records, for other meshes of the machine, the ranges that the mesh of this number uses, including
// Service ranges, which no other route shows. They replace all its earlier claims; without ranges it releases all
// of them. Claims are lost at the machine's boot, like everything else of the mesh in the kernel.
func ClaimRanges(mesh int, ranges ...netip.Prefix) error {
	claims, err := listClaims()
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if claim.Priority != mesh || slices.Contains(ranges, destination(claim)) {
			continue
		}
		if err := netlink.RouteDel(&claim); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("giving the range %s back: %w", destination(claim), err)
		}
	}
	for _, taken := range ranges {
		// The metric identifies the mesh.
		claim := &netlink.Route{Dst: network(taken), Type: unix.RTN_UNREACHABLE, Table: claimTable, Priority: mesh}
		if err := netlink.RouteReplace(claim); err != nil {
			return fmt.Errorf("claiming the range %s: %w", taken, err)
		}
	}
	return nil
}

// ClaimedByOthers lists the ranges that meshes of the machine have claimed, except the mesh of this number.
func ClaimedByOthers(mesh int) ([]netip.Prefix, error) {
	claims, err := listClaims()
	if err != nil {
		return nil, err
	}
	var taken []netip.Prefix
	for _, claim := range claims {
		if claim.Priority != mesh {
			taken = append(taken, destination(claim))
		}
	}
	return taken, nil
}

func listClaims() ([]netlink.Route, error) {
	var all []netlink.Route
	for _, family := range families() {
		claims, err := netdump.Whole(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{Table: claimTable}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return nil, fmt.Errorf("listing the ranges that meshes have claimed: %w", err)
		}
		all = append(all, claims...)
	}
	return all, nil
}
