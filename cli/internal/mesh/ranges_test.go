package mesh

import (
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/kit/nettest"
	"keelson.dev/kit/podroute"
)

// newMesh is one of a node, none of whose processes runs.
func newMesh(t *testing.T) *Mesh {
	t.Helper()
	return &Mesh{Layout: plan.Layout{Dir: t.TempDir()}, Out: io.Discard, Units: newFakeSystemd(t).units(),
		State: &state.State{BindAddress: "127.0.0.1", Advertise: "127.0.0.1", Nodes: []state.Node{{Name: "node-1"}}}}
}

// take chooses and claims ranges as keel up does.
func (m *Mesh) take(options Options) error {
	if err := m.decideRanges(options, 1); err != nil {
		return err
	}
	return m.prepareNetworks()
}

func (m *Mesh) mustTake(t *testing.T) plan.Ranges {
	t.Helper()
	if err := m.take(Options{}); err != nil {
		t.Fatal(err)
	}
	return m.State.Ranges
}

func ipv4(text string) plan.Range { return plan.Range{IPv4: netip.MustParsePrefix(text)} }

// overlap reports whether two ranges have an address in common.
func overlap(a, b plan.Range) bool {
	return slices.ContainsFunc(a.Networks(), func(network netip.Prefix) bool {
		return slices.ContainsFunc(b.Networks(), network.Overlaps)
	})
}

func (m *Mesh) mustSweep(t *testing.T) {
	t.Helper()
	if err := m.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Meshes of one machine have separate ranges, also if keel up names them, and up and down repair what an earlier
// run has left.
func TestMeshesShareNoRange(t *testing.T) {
	nettest.Own(t)
	before := nettest.Standing(t)
	first, second := newMesh(t), newMesh(t)
	one, two := first.mustTake(t), second.mustTake(t)
	if overlap(one.Service, two.Service) || overlap(one.Pod, two.Pod) || overlap(one.Nodes, two.Nodes) {
		t.Errorf("one mesh has %v and another one %v", one, two)
	}
	err := newMesh(t).take(Options{ServiceRange: one.Service})
	if want := "--service-cidr: " + one.Service.String() + " overlaps " + one.Service.String() +
		", which another mesh of this machine has: name a free one"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if again := first.mustTake(t); again != one {
		t.Errorf("an up again takes %v, want %v as before", again, one)
	}
	for _, m := range []*Mesh{first, second} {
		m.mustSweep(t)
		m.mustSweep(t)
	}
	if after := nettest.Standing(t); !slices.Equal(after, before) {
		t.Errorf("there are %v, want %v as before", after, before)
	}
}

// A dual-stack mesh claims its ranges of both families, and leaves no claim of either.
func TestAMeshOfBothFamilies(t *testing.T) {
	nettest.Own(t)
	for _, file := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} { // which stay, and bring routes along
		if err := os.WriteFile("/proc/sys/net/"+file, []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	before := nettest.Standing(t)
	both, err := plan.ParseRange("10.9.0.0/16,fd00:9::/56")
	if err != nil {
		t.Fatal(err)
	}
	first, second := newMesh(t), newMesh(t)
	for _, m := range []*Mesh{first, second} {
		m.State.Nodes = append(m.State.Nodes, state.Node{Name: "node-2"})
	}
	for range 2 {
		if err := first.take(Options{PodRange: both}); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.take(Options{PodRange: plan.Range{IPv4: both.IPv4}}); err == nil {
		t.Error("another mesh takes the same Pods of IPv4")
	}
	both.IPv4 = netip.MustParsePrefix("10.10.0.0/16")
	want := "--pod-cidr: fd00:9::/56 overlaps fd00:9::/56, which another mesh of this machine has: name a free one"
	if err := second.take(Options{PodRange: both}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	both.IPv6 = netip.MustParsePrefix("fd00:a::/56")
	if err := second.take(Options{PodRange: both}); err != nil {
		t.Fatal(err)
	}
	if one, two := first.State.Ranges, second.State.Ranges; overlap(one.Service, two.Service) ||
		overlap(one.Nodes, two.Nodes) || !two.Nodes.Dual() || !two.Service.Dual() {
		t.Errorf("one mesh has %v and another one %v", one, two)
	}
	for _, m := range []*Mesh{first, second} {
		m.mustSweep(t)
	}
	if after := nettest.Standing(t); !slices.Equal(after, before) {
		t.Errorf("there are %v, want %v as before", after, before)
	}
}

// The claims of a mesh whose record is lost do not block that mesh, and block others only until its next up.
func TestClaimsOutliveNoUp(t *testing.T) {
	nettest.Own(t)
	m, other := newMesh(t), newMesh(t)
	services := ipv4("10.7.0.0/16")
	for _, asked := range []plan.Range{services, services, ipv4("10.8.0.0/16")} {
		m.State.Ranges = plan.Ranges{}
		if err := m.take(Options{ServiceRange: asked}); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.take(Options{ServiceRange: services}); err != nil {
		t.Error(err)
	}
}

// A mesh of keel init has its ranges where it has claimed nothing since the machine's boot.
func TestUnitsTakeTheirRanges(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	recorded, err := state.Load(b.layout)
	if err != nil {
		t.Fatal(err)
	}
	m := newMesh(t)
	m.Units = b.units()
	for flag, options := range map[string]Options{plan.PodRangeFlag: {PodRange: recorded.Ranges.Pod},
		plan.ServiceRangeFlag: {ServiceRange: recorded.Ranges.Service}} {
		err := m.decideRanges(options, 1)
		if err == nil || !strings.HasPrefix(err.Error(), flag) || !strings.Contains(err.Error(), "another mesh") {
			t.Errorf("with %s of the units: %v", flag, err)
		}
	}
	if err := m.decideRanges(Options{}, 1); err != nil {
		t.Error(err)
	}
	if own := m.State.Ranges; overlap(own.Pod, recorded.Ranges.Pod) || overlap(own.Service, recorded.Ranges.Service) {
		t.Errorf("there are units with %v, and a mesh takes %v", recorded.Ranges, own)
	}
}

// A mesh that is down claims nothing. If another mesh has taken its ranges meanwhile, it neither starts with them
// nor takes them away.
func TestAMeshThatIsDownTakesNothing(t *testing.T) {
	nettest.Own(t)
	first, second := newMesh(t), newMesh(t)
	one := first.mustTake(t)
	first.mustSweep(t)
	two := second.mustTake(t)
	if two != one {
		t.Fatalf("a mesh takes %v, want %v, which nobody has any more", two, one)
	}
	leadToPods(t, second)
	standing := nettest.Standing(t)
	for _, options := range []Options{{}, {PodRange: one.Pod}} {
		err := first.take(options)
		if err == nil || !strings.Contains(err.Error(), "which this data directory has used from its start") {
			t.Errorf("with %v: %v", options, err)
		}
	}
	first.mustSweep(t)
	if after := nettest.Standing(t); !slices.Equal(after, standing) {
		t.Errorf("another mesh's down has left %v of %v", after, standing)
	}
}

// leadToPods leads a part of the mesh's range to a node that is not there, as a nodeagent would.
func leadToPods(t *testing.T, m *Mesh) {
	t.Helper()
	bridge, err := netlink.LinkByName(m.Layout.NodesBridge())
	if err != nil {
		t.Fatal(err)
	}
	part := &net.IPNet{IP: m.State.Ranges.Pod.IPv4.Addr().AsSlice(), Mask: net.CIDRMask(24, 32)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Attrs().Index, Dst: part,
		Protocol: podroute.Protocol}); err != nil {
		t.Fatal(err)
	}
}
