package nettest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// Standing names what the network of the calling thread holds, in order: firewall tables, links and IPv4 routes of all
// tables.
func Standing(t *testing.T) []string {
	t.Helper()
	conn, err := nftables.New()
	must(t, err)
	tables, err := conn.ListTables()
	must(t, err)
	links, err := netlink.LinkList()
	must(t, err)
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{}, netlink.RT_FILTER_TABLE)
	must(t, err)
	var all []string
	for _, table := range tables {
		all = append(all, fmt.Sprintf("table %d %s", table.Family, table.Name))
	}
	for _, link := range links {
		all = append(all, "link "+link.Attrs().Name)
	}
	for _, route := range routes {
		all = append(all, "route "+route.String())
	}
	slices.Sort(all)
	return all
}
