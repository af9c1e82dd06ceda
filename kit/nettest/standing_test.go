package nettest_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

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
		{"address 198.51.100.1/24 of one", func() error { return give("one", "198.51.100.1/24") }},
		{"address 2001:db8:2::1/64 of one", func() error { return give("one", "2001:db8:2::1/64") }},
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

// What the kernel adds to a link that comes up does not count as added, whenever it does.
func TestStandingLeavesOutWhatComesByItself(t *testing.T) {
	nettest.Own(t)
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "one"}, PeerName: "two"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	before := nettest.Standing(t)
	for _, name := range []string{"one", "two"} {
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The last of them come once no one else has the address.
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) {
			routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{LinkIndex: pair.Index,
				Table: unix.RT_TABLE_LOCAL}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
			return len(routes) > 1, err
		}); err != nil {
		t.Fatalf("the kernel adds no routes: %v", err)
	}
	if now := nettest.Standing(t); !slices.Equal(now, before) {
		t.Errorf("it was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(now, "\n"))
	}
}

// give adds an address to a link.
func give(name, text string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(text)
	if err != nil {
		return err
	}
	return netlink.AddrAdd(link, address)
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
