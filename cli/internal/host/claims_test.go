package host

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/nettest"
)

// expectClaimed checks that the mesh of a number sees exactly these ranges of others.
func expectClaimed(t *testing.T, mesh int, want ...netip.Prefix) {
	t.Helper()
	got, err := ClaimedByOthers(mesh)
	slices.SortFunc(got, netip.Prefix.Compare)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("mesh %#x sees %v, %v, want %v", mesh, got, err, want)
	}
}

// Each mesh sees what others have claimed, be it a range of its own, and gives back what is its own alone.
func TestClaimsAreOfTheirMeshes(t *testing.T) {
	nettest.Own(t)
	before := nettest.Standing(t)
	prefix := netip.MustParsePrefix
	claim := func(mesh int, ranges ...netip.Prefix) {
		t.Helper()
		for range 2 {
			if err := ClaimRanges(mesh, ranges...); err != nil {
				t.Fatal(err)
			}
		}
	}
	const first, second, third = 1, 0xffffff, 2
	pods, services, other := prefix("10.244.0.0/16"), prefix("10.96.0.0/16"), prefix("10.43.0.0/16")
	pods6, services6 := prefix("fd00:10:244::/56"), prefix("fd00:10:96::/112")
	expectClaimed(t, first)
	claim(first, pods, services)
	expectClaimed(t, first)
	expectClaimed(t, second, services, pods)
	claim(second, services)
	expectClaimed(t, first, services)
	claim(first, pods, other, pods6, services6)
	claim(second, services, services6)
	expectClaimed(t, first, services, services6)
	expectClaimed(t, second, other, pods, services6, pods6)
	claim(first, pods, other, pods6)
	expectClaimed(t, second, other, pods, pods6)
	expectClaimed(t, third, other, services, pods, services6, pods6)
	claim(first)
	expectClaimed(t, third, services, services6)
	claim(second)
	if after := nettest.Standing(t); !slices.Equal(after, before) {
		t.Errorf("there are %v, want %v as before", after, before)
	}
}

// A packet for a claimed range goes its way as before.
func TestAClaimLeadsNobody(t *testing.T) {
	nettest.Own(t)
	services, machine := netip.MustParsePrefix("10.96.0.0/16"), netip.MustParseAddr("192.0.2.1")
	if err := EnsureBridge("segment", netip.PrefixFrom(machine, 24)); err != nil {
		t.Fatal(err)
	}
	way := netip.MustParseAddr("192.0.2.2")
	if err := netlink.RouteAdd(&netlink.Route{Gw: way.AsSlice()}); err != nil {
		t.Fatal(err)
	}
	if err := ClaimRanges(1, services); err != nil {
		t.Fatal(err)
	}
	ways, err := netlink.RouteGet(services.Addr().Next().AsSlice())
	if err != nil || len(ways) != 1 || !ways[0].Gw.Equal(way.AsSlice()) {
		t.Errorf("a Service's address is led by %v, %v, want by %s", ways, err, way)
	}
	expectRoutes(t, "segment", plan.Range{})
}
