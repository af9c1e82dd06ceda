package e2e

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nettest"
	"keelson.dev/kit/nftrule"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestVXLAN runs a mesh whose nodes are on different segments, with a router between them that knows nothing of Pods.
// A second keel up takes what the nodes have led to each other for the mesh's own, and keel down takes it away.
func TestVXLAN(t *testing.T) {
	before := nettest.Standing(t)
	m := processes.New(t, 2, "--pod-network=vxlan", processes.WithDNS, dualPods)
	m.Start(t, mesh.NodeAgent)
	lift := fence(t, m)
	r := newRouter(t, m)
	cut, heal := func(t testing.TB) { r.connect(t, false) }, func(t testing.TB) { r.connect(t, true) }
	scenario.CrossNodeTraffic(t, m, cut, heal)
	t.Run("SecondFamilyTraffic", func(t *testing.T) { scenario.SecondFamilyTraffic(t, m) })
	lift()
	takeDown(t, m, before)
}

// router stands between the machine, which is the first node, and the second one. It drops fragments, as many do: what
// nodes send each other has to fit.
type router struct {
	*nettest.Peer
	// link is that of the second node.
	link string
	node netip.Addr
}

// The segment between the machine and the router, and the router's address as the second node sees it.
var (
	machineSide = netip.MustParseAddr("198.51.100.1")
	routerSide  = netip.MustParsePrefix("198.51.100.2/30")
	nodeSide    = netip.MustParseAddr("203.0.113.254")
)

// newRouter moves the second node's link from the bridge of the nodes to a router.
func newRouter(t *testing.T, m *processes.Mesh) *router {
	t.Helper()
	prefix := linkPrefix(m)
	r := &router{Peer: nettest.NewPeer(t, prefix+"r", "", routerSide, machineSide), link: prefix + "v2"}
	node, inner := secondNode(t, m)
	addresses, err := node.AddrList(inner, netlink.FAMILY_V4)
	must(t, err)
	link, err := netlink.LinkByName(r.link)
	must(t, err)
	if t.Failed() || len(addresses) != 1 {
		t.Fatalf("the second node is not as this test knows it: it has %v", addresses)
	}
	r.node, _ = netip.AddrFromSlice(addresses[0].IP.To4())

	thread := 0
	r.Do(func() { thread = unix.Gettid() })
	must(t, netlink.LinkSetNsPid(link, thread))
	must(t, netlink.RouteAdd(&netlink.Route{Dst: single(r.node), Gw: routerSide.Addr().AsSlice()}))
	r.Do(func() {
		must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
		link, err := netlink.LinkByName(r.link)
		must(t, err)
		must(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: single(nodeSide)}))
		must(t, dropFragments())
	})
	r.connect(t, true)

	// The node knows only the router as its neighbour.
	must(t, node.AddrAdd(inner, &netlink.Addr{IPNet: single(r.node)}))
	must(t, node.AddrDel(inner, &addresses[0]))
	routes, err := node.RouteList(inner, netlink.FAMILY_V4)
	must(t, err)
	for _, route := range routes {
		must(t, node.RouteDel(&route))
	}
	index := inner.Attrs().Index
	must(t, node.RouteAdd(&netlink.Route{LinkIndex: index, Dst: single(nodeSide), Scope: netlink.SCOPE_LINK}))
	must(t, node.RouteAdd(&netlink.Route{LinkIndex: index, Gw: nodeSide.AsSlice()}))
	return r
}

// secondNode opens the network of the second node, and finds its link to the others.
func secondNode(t testing.TB, m *processes.Mesh) (*netlink.Handle, netlink.Link) {
	t.Helper()
	inside, err := netns.GetFromPath(filepath.Join(m.DataDir, "netns", "node-2"))
	must(t, err)
	defer func() { _ = inside.Close() }()
	node, err := netlink.NewHandleAt(inside)
	must(t, err)
	t.Cleanup(node.Close)
	link, err := node.LinkByName("eth0")
	must(t, err)
	if t.Failed() {
		t.FailNow()
	}
	return node, link
}

// connect switches the way to the second node on, or off.
func (r *router) connect(t testing.TB, up bool) {
	t.Helper()
	r.Do(func() {
		link, err := netlink.LinkByName(r.link)
		must(t, err)
		if !up {
			must(t, netlink.LinkSetDown(link))
			return
		}
		must(t, netlink.LinkSetUp(link))
		must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: single(r.node),
			Scope: netlink.SCOPE_LINK}))
	})
}

// dropFragments comes before the kernel would put them together.
func dropFragments() error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "router"})
	chain := conn.AddChain(&nftables.Chain{Table: table, Name: "arriving", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityFirst})
	const offset, length = 6, 2 // flags and fragment offset of the header
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append([]expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: length, Mask: []byte{0x3f, 0xff}, Xor: []byte{0, 0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{0, 0}},
	}, nftrule.Drop()...)})
	return conn.Flush()
}

func single(address netip.Addr) *net.IPNet {
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}
}

// linkPrefix is what the names of the mesh's links begin with.
func linkPrefix(m *processes.Mesh) string {
	id := strings.TrimPrefix(filepath.Base(filepath.Dir(m.CgroupRoot())), "keelson-")
	return "keel" + id + "-"
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err) // some calls are not of the test's goroutine
	}
}
