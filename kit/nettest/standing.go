package nettest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/netdump"
)

// Standing lists what the network of the calling thread holds, sorted: firewall tables, links with their
// addresses, and of both families the routes of all tables and the rules that lead to these. It leaves out the
// link-scope addresses and the routes that the kernel adds to a link on its own, some of them late.
func Standing(t testing.TB) []string {
	t.Helper()
	conn, err := nftables.New()
	must(t, err)
	tables, err := conn.ListTables()
	must(t, err)
	links := whole(t, netlink.LinkList)
	rules := whole(t, func() ([]netlink.Rule, error) { return netlink.RuleList(netlink.FAMILY_ALL) })
	var all []string
	for _, table := range tables {
		all = append(all, fmt.Sprintf("table %d %s", table.Family, table.Name))
	}
	for _, link := range links {
		all = append(all, "link "+link.Attrs().Name)
		for _, address := range whole(t, func() ([]netlink.Addr, error) {
			return netlink.AddrList(link, netlink.FAMILY_ALL)
		}) {
			if address.Scope != unix.RT_SCOPE_LINK {
				all = append(all, fmt.Sprintf("address %s of %s", address.IPNet, link.Attrs().Name))
			}
		}
	}
	for _, rule := range rules {
		all = append(all, fmt.Sprintf("rule of family %d: %v", rule.Family, rule))
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		for _, route := range whole(t, func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{}, netlink.RT_FILTER_TABLE)
		}) {
			if route.Protocol != unix.RTPROT_KERNEL {
				all = append(all, "route "+route.String())
			}
		}
	}
	slices.Sort(all)
	return all
}

// whole fails the test where the list cannot be read.
func whole[T any](t testing.TB, list func() ([]T, error)) []T {
	t.Helper()
	all, err := netdump.Whole(list)
	must(t, err)
	return all
}
