package nettest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// Standing names what the network of the calling thread holds, in order: firewall tables, links, and of both families
// the routes of all tables and the rules that lead to these.
func Standing(t testing.TB) []string {
	t.Helper()
	conn, err := nftables.New()
	must(t, err)
	tables, err := conn.ListTables()
	must(t, err)
	links, err := netlink.LinkList()
	must(t, err)
	rules, err := netlink.RuleList(netlink.FAMILY_ALL)
	must(t, err)
	var all []string
	for _, table := range tables {
		all = append(all, fmt.Sprintf("table %d %s", table.Family, table.Name))
	}
	for _, link := range links {
		all = append(all, "link "+link.Attrs().Name)
	}
	for _, rule := range rules {
		all = append(all, fmt.Sprintf("rule of family %d: %v", rule.Family, rule))
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{}, netlink.RT_FILTER_TABLE)
		must(t, err)
		for _, route := range routes {
			all = append(all, "route "+route.String())
		}
	}
	slices.Sort(all)
	return all
}
