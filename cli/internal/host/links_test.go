package host

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"keelson.dev/kit/nettest"
	"keelson.dev/kit/podroute"
)

// nobodys is what no link's name begins with.
const nobodys = "nobodys-"

// expectRoutes wants a mesh with these links and this range to see just these networks of others.
func expectRoutes(t *testing.T, ownLinks string, pods netip.Prefix, want ...netip.Prefix) {
	t.Helper()
	got, err := Routes(ownLinks, pods)
	slices.SortFunc(got, netip.Prefix.Compare)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("a mesh with links %q and Pods in %v sees %v, %v, want %v", ownLinks, pods, got, err, want)
	}
}

// A range is taken for others by the mesh's bridge, as long as there is that bridge.
func TestABridgeTakesItsRange(t *testing.T) {
	nettest.Own(t)
	pods := netip.MustParsePrefix("10.244.1.0/24")
	for range 2 {
		if err := EnsureBridge("keeltest-1", pods, netip.MustParseAddr("10.244.1.1")); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, netip.Prefix{}, pods)
	expectRoutes(t, "keeltest-", netip.Prefix{})
	for range 2 {
		if err := RemoveLink("keeltest-1"); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, netip.Prefix{})
}

// A range that a mesh has reserved is seen by others, and not by itself.
func TestAReservedRangeIsTaken(t *testing.T) {
	nettest.Own(t)
	pods := netip.MustParsePrefix("10.244.0.0/16")
	for range 2 {
		if err := ReserveRange(pods); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, netip.Prefix{}, pods)
	expectRoutes(t, nobodys, pods)
	for range 2 {
		if err := ReleaseRange(pods); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, netip.Prefix{})
}

// What nodeagents lead to other nodes is the mesh's own on whatever link, within its range alone, and goes with it.
func TestWaysToOtherNodesAreTheMeshsOwn(t *testing.T) {
	nettest.Own(t)
	prefix := netip.MustParsePrefix
	segment, pods := prefix("192.0.2.0/24"), prefix("10.244.0.0/16")
	if err := EnsureBridge("segment", segment, netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	own, another, foreign, wider := prefix("10.244.1.0/24"), prefix("10.42.1.0/24"), prefix("10.244.200.0/24"),
		prefix("10.240.0.0/12")
	for to, protocol := range map[netip.Prefix]int{own: podroute.Protocol, another: podroute.Protocol,
		wider: podroute.Protocol, foreign: 4} {
		if err := netlink.RouteAdd(&netlink.Route{Dst: network(to), Protocol: netlink.RouteProtocol(protocol),
			Gw: netip.MustParseAddr("192.0.2.2").AsSlice()}); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, netip.Prefix{}, another, wider, own, foreign, segment)
	expectRoutes(t, nobodys, pods, another, wider, foreign, segment)
	if err := RemovePodRoutes(netip.Prefix{}); err != nil {
		t.Errorf("of a mesh without a range: %v", err)
	}
	expectRoutes(t, nobodys, netip.Prefix{}, another, wider, own, foreign, segment)
	for range 2 {
		if err := RemovePodRoutes(pods); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, netip.Prefix{}, another, wider, foreign, segment)
}

// Links of every kind go by what their names begin with, others' stay.
func TestLinksGoByTheirNames(t *testing.T) {
	nettest.Own(t)
	named := func(name string) netlink.LinkAttrs {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		return attributes
	}
	for _, link := range []netlink.Link{
		&netlink.Bridge{LinkAttrs: named("keel0a-1")},
		&netlink.Vxlan{LinkAttrs: named("keel0a-1x"), VxlanId: 7, Port: 4789},
		&netlink.Veth{LinkAttrs: named("keel0a-v2"), PeerName: "keel0a-v2in"}, // one goes with the other
		&netlink.Bridge{LinkAttrs: named("keel0b-1")},
	} {
		if err := netlink.LinkAdd(link); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ prefix, left string }{
		{"", "lo keel0a-1 keel0a-1x keel0a-v2 keel0a-v2in keel0b-1"},
		{"keel0a-", "lo keel0b-1"}, {"keel0a-", "lo keel0b-1"},
	} {
		if err := RemoveLinks(row.prefix); err != nil {
			t.Fatal(err)
		}
		links, err := netlink.LinkList()
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, link := range links {
			left = append(left, link.Attrs().Name)
		}
		if slices.Sort(left[1:]); strings.Join(left, " ") != row.left {
			t.Errorf("without those that begin with %q there are %v, want %s", row.prefix, left, row.left)
		}
	}
}
