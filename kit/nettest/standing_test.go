package nettest_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nettest"
)

func TestStanding(t *testing.T) {
	nettest.Own(t)
	before := nettest.Standing(t)
	for _, row := range []struct {
		want string
		make func() error
	}{
		{"table 1 one", func() error {
			conn, err := nftables.New()
			if err != nil {
				return err
			}
			conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "one"})
			return conn.Flush()
		}},
		{"link one", func() error {
			return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "one"}})
		}},
		{"192.0.2.0/24", func() error { return refuse("192.0.2.0/24") }},
		{"2001:db8:1::/48", func() error { return refuse("2001:db8:1::/48") }},
		{"rule of family 2:", func() error { return lead(unix.AF_INET, "192.0.2.0/24") }},
		{"rule of family 10:", func() error { return lead(unix.AF_INET6, "2001:db8:1::/48") }},
	} {
		if err := row.make(); err != nil {
			t.Fatalf("making %s: %v", row.want, err)
		}
		now := nettest.Standing(t)
		added := slices.DeleteFunc(slices.Clone(now), func(s string) bool { return slices.Contains(before, s) })
		if len(added) != 1 || !strings.Contains(added[0], row.want) {
			t.Errorf("%v was added, want %s", added, row.want)
		}
		before = now
	}
}

// refuse makes a route of another table than the usual one.
func refuse(network string) error {
	_, to, err := net.ParseCIDR(network)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: to, Type: unix.RTN_UNREACHABLE, Table: 75})
}

// lead makes a rule that leads to that table.
func lead(family int, network string) error {
	_, to, err := net.ParseCIDR(network)
	if err != nil {
		return err
	}
	rule := netlink.NewRule()
	rule.Family, rule.Dst, rule.Table = family, to, 75
	return netlink.RuleAdd(rule)
}
