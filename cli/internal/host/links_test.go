package host

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/nettest"
	"keelson.dev/kit/podroute"
)

// nobodys is what no link's name begins with.
const nobodys = "nobodys-"

// expectRoutes checks that a mesh with these links and this range sees exactly these networks of others.
func expectRoutes(t *testing.T, ownLinks string, pods plan.Range, want ...netip.Prefix) {
	t.Helper()
	got, err := Routes(ownLinks, pods)
	slices.SortFunc(got, netip.Prefix.Compare)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("a mesh with links %q and Pods in %v sees %v, %v, want %v", ownLinks, pods, got, err, want)
	}
}

func mustRange(t *testing.T, text string) plan.Range {
	t.Helper()
	parsed, err := plan.ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// A range is taken for others by the mesh's bridge, as long as there is that bridge.
func TestABridgeTakesItsRange(t *testing.T) {
	nettest.Own(t)
	pods := mustRange(t, "10.244.1.0/24,fd00:10:244:1::/64")
	for range 2 {
		if err := EnsureBridge("keeltest-1", netip.MustParsePrefix("10.244.1.1/24"),
			netip.MustParsePrefix("fd00:10:244:1::1/64")); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, plan.Range{}, pods.Networks()...)
	expectRoutes(t, "keeltest-", plan.Range{})
	expectHardware(t, "keeltest-1")
	for range 2 {
		if err := RemoveLink("keeltest-1"); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, plan.Range{})
}

// expectHardware checks that a bridge keeps its hardware address when it gets a port with the lowest possible one.
func expectHardware(t *testing.T, name string) {
	t.Helper()
	bridge, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "port", MasterIndex: bridge.Attrs().Index,
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}, PeerName: "port-in"}
	if err := netlink.LinkAdd(port); err != nil {
		t.Fatal(err)
	}
	now, err := netlink.LinkByName(name)
	was := bridge.Attrs().HardwareAddr
	if err != nil || now.Attrs().HardwareAddr.String() != was.String() {
		t.Errorf("with a port %s is %v, %v, and was %v", name, now.Attrs().HardwareAddr, err, was)
	}
	if err := netlink.LinkDel(port); err != nil {
		t.Fatal(err)
	}
}

// Other meshes see a range that a mesh has reserved; the mesh itself does not.
func TestAReservedRangeIsTaken(t *testing.T) {
	nettest.Own(t)
	pods := mustRange(t, "10.244.0.0/16,fd00:10:244::/56")
	for range 2 {
		if err := errors.Join(ReserveRange(pods.IPv4), ReserveRange(pods.IPv6)); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, plan.Range{}, pods.Networks()...)
	expectRoutes(t, nobodys, pods)
	for range 2 {
		if err := errors.Join(ReleaseRange(pods.IPv4), ReleaseRange(pods.IPv6)); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, plan.Range{})
}

// Routes of nodeagents to other nodes belong to the mesh on any link, but only within its range, and are removed
// with it.
func TestWaysToOtherNodesAreTheMeshsOwn(t *testing.T) {
	nettest.Own(t)
	prefix := netip.MustParsePrefix
	segment, segment6, pods := prefix("192.0.2.0/24"), prefix("2001:db8:2::/64"),
		mustRange(t, "10.244.0.0/16,fd00:10:244::/56")
	if err := EnsureBridge("segment", prefix("192.0.2.1/24"), prefix("2001:db8:2::1/64")); err != nil {
		t.Fatal(err)
	}
	own, another, foreign, wider := prefix("10.244.1.0/24"), prefix("10.42.1.0/24"), prefix("10.244.200.0/24"),
		prefix("10.240.0.0/12")
	own6, another6, foreign6 := prefix("fd00:10:244:1::/64"), prefix("fd00:10:42:1::/64"), prefix("fd00:10:244:2::/64")
	for to, protocol := range map[netip.Prefix]int{own: podroute.Protocol, another: podroute.Protocol,
		wider: podroute.Protocol, foreign: 4, own6: podroute.Protocol, another6: podroute.Protocol, foreign6: 4} {
		way := netip.MustParseAddr("192.0.2.2")
		if to.Addr().Is6() {
			way = netip.MustParseAddr("2001:db8:2::2")
		}
		if err := netlink.RouteAdd(&netlink.Route{Dst: network(to), Protocol: netlink.RouteProtocol(protocol),
			Gw: way.AsSlice()}); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, plan.Range{}, another, wider, own, foreign, segment, segment6, another6, own6, foreign6)
	expectRoutes(t, nobodys, pods, another, wider, foreign, segment, segment6, another6, foreign6)
	if err := RemovePodRoutes(netip.Prefix{}); err != nil {
		t.Errorf("of a mesh without a range: %v", err)
	}
	expectRoutes(t, nobodys, plan.Range{}, another, wider, own, foreign, segment, segment6, another6, own6, foreign6)
	for range 2 {
		if err := errors.Join(RemovePodRoutes(pods.IPv4), RemovePodRoutes(pods.IPv6)); err != nil {
			t.Fatal(err)
		}
	}
	expectRoutes(t, nobodys, plan.Range{}, another, wider, foreign, segment, segment6, another6, foreign6)
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
		&netlink.Veth{LinkAttrs: named("keel0a-v2"), PeerName: "keel0a-v2in"}, // its peer is removed with it
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
