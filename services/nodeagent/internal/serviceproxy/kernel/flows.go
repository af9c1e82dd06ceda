package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// strayFlows match the UDP flows that lead elsewhere than they may.
type strayFlows plan.Flows

// MatchConntrackFlow matches a flow to one of the destinations that does not go to one of its endpoints.
func (f strayFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	target, _ := netip.AddrFromSlice(flow.Forward.DstIP)
	endpoints, ours := f[plan.Destination{Addr: target.Unmap(), Protocol: unix.IPPROTO_UDP, Port: flow.Forward.DstPort}]
	if !ours {
		return false
	}
	answers, _ := netip.AddrFromSlice(flow.Reverse.SrcIP)
	return !slices.Contains(endpoints, netip.AddrPortFrom(answers.Unmap(), flow.Reverse.SrcPort))
}

// ForgetFlows makes the kernel forget the flows that lead elsewhere than they may, so that it applies the rules to
// them again.
func ForgetFlows(may plan.Flows) error {
	var ipv4, ipv6 bool
	for to := range may {
		ipv4, ipv6 = ipv4 || to.Addr.Is4(), ipv6 || to.Addr.Is6()
	}
	var failed error
	for family, use := range map[netlink.InetFamily]bool{unix.AF_INET: ipv4, unix.AF_INET6: ipv6} {
		if !use {
			continue
		}
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, strayFlows(may)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("making the kernel forget UDP flows: %w", err))
		}
	}
	return failed
}
