package processes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/netdump"
)

// claimTable and the usual ranges are keel's: where it keeps the ranges of the machine's meshes, and which it takes
// first.
const claimTable = 7575

var usualRanges = []string{"10.244.0.0/16", "10.96.0.0/16", "10.241.0.0/24"}

// claimant stands in the place of a mesh's number, above all of them.
const claimant = 1 << 30

// ClaimUsualRanges has keel take others than its first choices, so that a test which leans on one of those fails on
// every machine, and not only where another mesh has it. The function that it returns gives them back.
func ClaimUsualRanges() (release func(), err error) {
	claims := make([]netlink.Route, len(usualRanges))
	for i, text := range usualRanges {
		_, claimed, err := net.ParseCIDR(text)
		if err != nil {
			return nil, fmt.Errorf("reading a usual range: %w", err)
		}
		claims[i] = netlink.Route{Dst: claimed, Type: unix.RTN_UNREACHABLE, Table: claimTable, Priority: claimant}
		if err := netlink.RouteReplace(&claims[i]); err != nil {
			return nil, fmt.Errorf("claiming %s: %w", claimed, err)
		}
	}
	return func() {
		for i := range claims {
			_ = netlink.RouteDel(&claims[i])
		}
	}, nil
}

// FreeRange is a /16 for Services that no route of the machine and no other mesh has. Chosen at random, it is hardly
// the one that another run of the tests is about to take.
func FreeRange(t testing.TB) netip.Prefix {
	t.Helper()
	routes, err := netdump.Whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		t.Fatalf("listing the machine's routes: %v", err)
	}
	const first, last = 16, 127 // those of 10.0.0.0/8 that keel itself tries for Services
	for _, i := range rand.Perm(last - first + 1) {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(first + i), 0, 0}), 16)
		if !routed(candidate, routes) {
			return candidate
		}
	}
	t.Fatalf("all of 10.%d.0.0/16 to 10.%d.0.0/16 are routed", first, last)
	return netip.Prefix{}
}

// routed reports whether a route that is no default route leads into the range.
func routed(candidate netip.Prefix, routes []netlink.Route) bool {
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		dst, err := netip.ParsePrefix(route.Dst.String())
		if err == nil && dst.Bits() > 0 && dst.Overlaps(candidate) {
			return true
		}
	}
	return false
}

// PodRange is the range that keel has taken for the mesh's Pods.
func (m *Mesh) PodRange(t testing.TB) netip.Prefix {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.DataDir, "keel.json"))
	if err != nil {
		t.Fatalf("reading what keel up has chosen: %v", err)
	}
	var state struct {
		Ranges struct {
			Pod netip.Prefix `json:"pod"`
		} `json:"ranges"`
	}
	if err := json.Unmarshal(content, &state); err != nil || !state.Ranges.Pod.IsValid() {
		t.Fatalf("keel.json names no range of Pods: %v\n%s", err, content)
	}
	return state.Ranges.Pod
}
