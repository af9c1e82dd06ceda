package serviceproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MatchConntrackFlow matches what flows to a key and not to one of its endpoints.
func (f Flows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	target, _ := netip.AddrFromSlice(flow.Forward.DstIP)
	endpoints, ours := f[Key{target.Unmap(), unix.IPPROTO_UDP, flow.Forward.DstPort}]
	if !ours {
		return false
	}
	answers, _ := netip.AddrFromSlice(flow.Reverse.SrcIP)
	return !slices.Contains(endpoints, netip.AddrPortFrom(answers.Unmap(), flow.Reverse.SrcPort))
}

// forget makes the kernel judge anew what flows elsewhere.
func (f Flows) forget() (uint, error) {
	var six, four bool
	for key := range f {
		six, four = six || key.Addr.Is6(), four || key.Addr.Is4()
	}
	var count uint
	var failed error
	for family, use := range map[netlink.InetFamily]bool{unix.AF_INET: four, unix.AF_INET6: six} {
		if !use {
			continue
		}
		n, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, f)
		count += n
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("making the kernel forget UDP flows: %w", err))
		}
	}
	return count, failed
}
