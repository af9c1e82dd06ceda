package podnetwork

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"go.uber.org/zap"

	"keelson.dev/kit/hostports"
	"keelson.dev/kit/keptport"
	"keelson.dev/kit/nettest"
	"keelson.dev/kit/podroute"
)

// patience is enough for a packet that was lost on a new link to be sent again.
const patience = 5 * time.Second

// site is a node in a network of its own; the test's network is between the nodes.
type site struct {
	*nettest.Peer
	t    *testing.T
	net  *Network
	pod  *nettest.Peer
	self Node
	// address is the Pod's address.
	address netip.Addr
}

// cluster creates nodes, each with a Pod. Nodes on a bridge are on one segment; routed ones are not.
func cluster(t *testing.T, mode Mode, routed bool) []*site {
	t.Helper()
	nettest.Own(t)
	if !routed {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = "segment"
		must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}))
		link, err := netlink.LinkByName("segment")
		must(t, err)
		must(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(prefix("192.0.2.254/24"))}))
		must(t, netlink.LinkSetUp(link))
	} else {
		must(t, setSwitch("ipv4/ip_forward"))
	}
	var sites []*site
	for i := 1; i <= 3; i++ {
		s := &site{t: t, address: netip.AddrFrom4([4]byte{10, 244, byte(i), 5})}
		address, gateway, bridge := fmt.Sprintf("192.0.2.%d", i), "192.0.2.254", "segment"
		if routed {
			address, gateway, bridge = fmt.Sprintf("198.51.%d.2", i), fmt.Sprintf("198.51.%d.1", i), ""
		}
		s.self = at(fmt.Sprint("n", i), fmt.Sprintf("10.244.%d.0/24", i), address)
		s.Peer = nettest.NewPeer(t, fmt.Sprint("n", i), bridge, prefix(address+"/24"), netip.MustParseAddr(gateway))
		s.start(mode)
		sites = append(sites, s)
	}
	meet(sites)
	for _, s := range sites {
		s.Do(func() {
			s.pod = nettest.NewPeer(t, "pod", "keel0", netip.PrefixFrom(s.address, 24), netip.AddrFrom4([4]byte{10, 244,
				s.self.Ranges[0].Addr().As4()[2], 1}))
		})
	}
	return sites
}

// start starts the agent, or restarts it.
func (s *site) start(mode Mode) {
	s.net = &Network{Config: Config{Log: zap.NewNop(), NodeName: s.self.Name, Mode: mode,
		Cluster: []netip.Prefix{prefix("10.244.0.0/16")}, ConfigDir: s.t.TempDir(), CNI: CNI{Bridge: "keel0"},
		VXLANID: 75,
		Changed: func(context.Context) {}}, wake: make(chan struct{}, 1), known: map[string]Node{},
		problem: problemNoRange}
	s.net.kernel = kernel{bridge: "keel0", tunnel: tunnelName("keel0"), vxlanID: s.net.VXLANID,
		cluster: s.net.Cluster}
}

// meet makes all nodes known to each other.
func meet(sites []*site) {
	for _, s := range sites {
		clear(s.net.known)
		for _, other := range sites {
			s.net.known[other.self.Name] = other.self
		}
		s.sync()
	}
}

func (s *site) sync() {
	s.t.Helper()
	s.Do(func() { must(s.t, s.net.sync(s.t.Context())) })
	if problem := s.net.Problem(); problem != "" {
		s.t.Fatalf("%s: %s", s.self.Name, problem)
	}
}

// reaches returns an error unless the Pod of one node reaches that of another, over TCP and UDP, under its own
// address.
func (s *site) reaches(other *site) error {
	var err error
	target := netip.AddrPortFrom(other.address, 7777)
	var listener net.Listener
	var socket *net.UDPConn
	other.pod.Do(func() {
		if listener, err = net.Listen("tcp4", target.String()); err == nil {
			socket, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(target))
		}
	})
	if err != nil {
		return err
	}
	defer listener.Close()
	defer func() { _ = socket.Close() }()
	must(s.t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	s.pod.Do(func() {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp4", target.String(), patience); err == nil {
			conn.Close()
			if conn, err = net.Dial("udp4", target.String()); err == nil {
				_, err = conn.Write([]byte("ask"))
				conn.Close()
			}
		}
	})
	if err != nil {
		return err
	}
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	conn.Close()
	if seen := netip.MustParseAddrPort(conn.RemoteAddr().String()); seen.Addr() != s.address {
		return fmt.Errorf("over TCP it comes from %s", seen)
	}
	buffer := make([]byte, 16)
	must(s.t, socket.SetReadDeadline(time.Now().Add(patience)))
	_, from, err := socket.ReadFromUDPAddrPort(buffer)
	if err == nil && from.Addr().Unmap() != s.address {
		err = fmt.Errorf("over UDP it comes from %s", from)
	}
	return err
}

func expectAll(t *testing.T, sites []*site) {
	t.Helper()
	for _, from := range sites {
		for _, to := range sites {
			if from != to {
				if err := from.reaches(to); err != nil {
					t.Errorf("from the Pod of %s to that of %s: %v", from.self.Name, to.self.Name, err)
				}
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err) // some calls are not of the test's goroutine
	}
}

// routesOf lists all our routes in the node's network.
func (s *site) routesOf() string {
	var texts []string
	s.Do(func() {
		routes, err := s.net.kernel.routes()
		must(s.t, err)
		for prefix, route := range routes {
			texts = append(texts, fmt.Sprint(prefix, " by ", route.Gw))
		}
	})
	return strings.Join(texts, ", ")
}

func TestRoutesCarryPods(t *testing.T) {
	sites := cluster(t, Routes, false)
	expectAll(t, sites)
	one, two, three := sites[0], sites[1], sites[2]

	// Routes of other programs stay, also into the cluster's range, and so do ours into another cluster's.
	one.Do(func() {
		via := two.self.Addresses[0].AsSlice()
		must(t, netlink.RouteAdd(&netlink.Route{Dst: ipNet(prefix("10.244.200.0/24")), Gw: via, Protocol: 3}))
		must(t, netlink.RouteAdd(&netlink.Route{Dst: ipNet(prefix("10.99.0.0/24")), Gw: via,
			Protocol: podroute.Protocol}))
	})
	// Removing a node removes its route, and no other.
	one.net.gone(nodeObject(three.self))
	one.sync()
	if got := one.routesOf(); got != "10.244.2.0/24 by 192.0.2.2" {
		t.Errorf("after n3 has gone there are %s", got)
	}
	one.Do(func() {
		for _, kept := range []string{"10.244.200.0/24", "10.99.0.0/24"} {
			found, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: ipNet(prefix(kept))},
				netlink.RT_FILTER_DST)
			if err != nil || len(found) != 1 {
				t.Errorf("the route to %s, which is another's, has gone: %v", kept, err)
			}
		}
	})
	meet(sites)
	expectAll(t, sites)

	// A node whose address changes is reached at the new one.
	two.Do(func() {
		link, err := netlink.LinkByName("n2-in")
		must(t, err)
		must(t, netlink.AddrDel(link, &netlink.Addr{IPNet: ipNet(prefix("192.0.2.2/24"))}))
		must(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(prefix("192.0.2.22/24"))}))
	})
	two.self = at("n2", "10.244.2.0/24", "192.0.2.22")
	meet(sites)
	expectAll(t, sites)
}

// What the kernel forgets with a link is restored.
func TestALinkThatWasCutHeals(t *testing.T) {
	for _, mode := range []Mode{Routes, VXLAN} {
		t.Run(string(mode), func(t *testing.T) {
			sites := cluster(t, mode, false)
			one := sites[0]
			one.Do(func() {
				link, err := netlink.LinkByName("n1-in")
				must(t, err)
				must(t, netlink.LinkSetDown(link))
				if mode == Routes {
					if err := one.net.sync(t.Context()); err == nil {
						t.Error("without its link the node is content")
					}
				}
				must(t, netlink.LinkSetUp(link))
			})
			one.sync()
			expectAll(t, sites)
		})
	}
}

// An agent that restarts loses nothing: no route is missing for a moment, and the table is written at once.
func TestARestartTakesOver(t *testing.T) {
	for _, mode := range []Mode{Routes, VXLAN} {
		t.Run(string(mode), func(t *testing.T) {
			sites := cluster(t, mode, false)
			updates, done := make(chan netlink.RouteUpdate, 100), make(chan struct{})
			sites[0].Do(func() { must(t, netlink.RouteSubscribe(updates, done)) })
			defer close(done)
			for _, s := range sites {
				s.start(mode)
			}
			meet(sites)
			expectAll(t, sites)
			for len(updates) > 0 {
				if update := <-updates; update.Dst != nil && inside(prefixOf(update.Dst), sites[0].net.Cluster) {
					t.Errorf("a route was touched: %v", update.Route)
				}
			}
		})
	}
}

// Routes reports nodes that are not neighbors; VXLAN reaches them.
func TestVXLANCarriesPodsAnywhere(t *testing.T) {
	sites := cluster(t, VXLAN, true)
	expectAll(t, sites)
	one, two := sites[0], sites[1]
	one.net.gone(nodeObject(sites[2].self))
	one.sync()
	if got := one.routesOf(); got != "10.244.2.0/24 by 10.244.2.0" {
		t.Errorf("after n3 has gone there are %s", got)
	}
	one.Do(func() {
		link, err := netlink.LinkByName("keel0x")
		must(t, err)
		for _, family := range []int{netlink.FAMILY_V4, 7} {
			known, err := netlink.NeighList(link.Attrs().Index, family)
			if err != nil || len(known) != 1 {
				t.Errorf("%d entries of family %d are left, %v: want n2's alone", len(known), family, err)
			}
		}
	})
	if err := one.reaches(two); err != nil {
		t.Errorf("n2 is reached no longer: %v", err)
	}
	// The other mode removes the device, and reports what it cannot do.
	one.start(Routes)
	one.net.known = map[string]Node{"n1": one.self, "n2": two.self}
	one.Do(func() {
		if err := one.net.sync(t.Context()); err == nil {
			t.Error("a node behind a router is no problem")
		}
		if _, err := netlink.LinkByName("keel0x"); err == nil {
			t.Error("the tunnel is left")
		}
	})
	if text := strings.Join(one.net.Others(), "; "); !strings.Contains(text,
		"198.51.2.2, where the range 10.244.2.0/24 is, is not on a segment of this node: --pod-network=vxlan reaches "+
			"it") ||
		one.net.Problem() != "" {
		t.Errorf("it says %q and %q", text, one.net.Problem())
	}
}

// Clusters share a machine if their networks have numbers of their own.
func TestTwoTunnelsOnAMachine(t *testing.T) {
	nettest.Own(t)
	plan := Decide(Input{Mode: VXLAN, Own: at("b", "10.244.1.0/24", "192.0.2.2"), MTU: 1500})
	for _, row := range []struct {
		bridge, refused string
		id              int
	}{
		{"one", "", 75}, {"two", "", 76},
		{"three", "another network of this machine has --vxlan-id=75 and port 4789: ", 75},
	} {
		err := kernel{bridge: row.bridge, tunnel: tunnelName(row.bridge), vxlanID: row.id}.ensureTunnel(plan)
		if (err == nil) != (row.refused == "") || err != nil && !strings.HasPrefix(err.Error(), row.refused) {
			t.Errorf("the tunnel of %s: %v", row.bridge, err)
		}
	}
}

// What leaves the cluster has the node's address; what goes to another node's Pod does not.
func TestWhatLeavesTheClusterIsMasqueraded(t *testing.T) {
	sites := cluster(t, Routes, false)
	one := sites[0]
	listener, err := net.Listen("tcp4", "192.0.2.254:7778")
	must(t, err)
	defer listener.Close()
	one.pod.Do(func() {
		conn, err := net.DialTimeout("tcp4", "192.0.2.254:7778", patience)
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	conn, err := listener.Accept()
	must(t, err)
	conn.Close()
	if from := conn.RemoteAddr().(*net.TCPAddr).IP.String(); from != "192.0.2.1" {
		t.Errorf("beyond the cluster the Pod comes from %s", from)
	}
}

// Letting connections from the loopback address pass the bridge opens no way from Pods to what listens there.
func TestPodsDoNotReachTheLoopbackAddress(t *testing.T) {
	one := cluster(t, Routes, false)[0]
	var listener net.Listener
	var err error
	one.Do(func() { listener, err = net.Listen("tcp4", "127.0.0.1:0") })
	must(t, err)
	defer listener.Close()
	// A Pod that may change its network sends 127.0.0.1 to the machine.
	one.pod.Do(func() {
		lo, err := netlink.LinkByName("lo")
		must(t, err)
		must(t, netlink.AddrDel(lo, &netlink.Addr{IPNet: ipNet(prefix("127.0.0.1/8"))}))
		must(t, netlink.RouteAdd(&netlink.Route{Dst: ipNet(prefix("127.0.0.1/32")),
			Gw: netip.MustParseAddr("10.244.1.1").AsSlice()}))
		must(t, kernel{bridge: "pod-in"}.routeLoopback())
	})
	reaches := func() (reached bool) {
		one.pod.Do(func() {
			conn, err := net.DialTimeout("tcp4", listener.Addr().String(), 300*time.Millisecond)
			if reached = err == nil; reached {
				conn.Close()
			}
		})
		return reached
	}
	if reaches() {
		t.Error("the Pod reaches the machine's loopback address")
	}
	one.Do(func() { must(t, setFirewall(Firewall{Table: Table("keel0"), Bridge: "other"})) })
	if !reaches() {
		t.Error("without the rule it does not either, so the test shows nothing")
	}
}

// expectNoticed waits for an event that makes containerd read its folder again; creating a file is not enough.
func expectNoticed(t *testing.T, watcher *fsnotify.Watcher) {
	t.Helper()
	for {
		select {
		case event := <-watcher.Events:
			if event.Has(fsnotify.Rename) {
				return
			}
		case <-time.After(patience):
			t.Error("containerd would not look at its new configuration")
			return
		}
	}
}

// A node whose range belongs to an older one reports that, and changes nothing.
func TestTheRangeOfAnOlderNode(t *testing.T) {
	nettest.Own(t)
	s := &site{t: t, self: at("n1", "10.244.1.0/24", "192.0.2.1").born(2)}
	s.start(Routes)
	s.net.known["n1"] = s.self
	s.net.known["n2"] = at("n2", "10.244.1.0/24", "192.0.2.2").born(1)
	if err := s.net.sync(t.Context()); err == nil || !strings.Contains(s.net.Problem(), "which is older") {
		t.Errorf("%v: %s", err, s.net.Problem())
	}
	links, err := netlink.LinkList()
	if must(t, err); len(links) != 1 {
		t.Errorf("%d links, want the loopback one alone", len(links))
	}
	delete(s.net.known, "n2")
	must(t, s.net.sync(t.Context()))
	if problem := s.net.Problem(); problem != "" {
		t.Errorf("when the other Node has gone: %s", problem)
	}
}

// Ports that an earlier agent let Pods take are closed when the agent starts, and again after they were opened.
func TestAnAgentClosesWhatIsKept(t *testing.T) {
	sites := cluster(t, Routes, false)
	s := sites[0]
	s.net.CNI.PortTable, s.net.CNI.Kept = "ports", keptport.NodePorts()
	closed := func(when string, want int) {
		t.Helper()
		s.Do(func() {
			conn, err := nftables.New()
			must(t, err)
			table := hostports.Table("ports")
			for _, chain := range []string{"prerouting", "output"} {
				rules, err := conn.GetRules(table, &nftables.Chain{Name: chain, Table: table})
				must(t, err)
				if len(rules) != want {
					t.Errorf("%s: %d rules in %s, want %d", when, len(rules), chain, want)
				}
			}
		})
	}
	open := func() {
		s.Do(func() {
			conn, err := nftables.New()
			must(t, err)
			hostports.Open(conn, "ports", nil)
			must(t, conn.Flush())
		})
	}
	open()
	closed("as it was left", 1)
	s.Do(func() { must(t, s.net.ClosePorts()) })
	closed("at the start", 4)
	open()
	s.sync()
	closed("later on", 4)
}

// The runtime finds a complete configuration, and none before the node has its range.
func TestTheConfigurationComesWithTheRange(t *testing.T) {
	nettest.Own(t)
	s := &site{t: t, self: at("n1", "192.0.2.1")}
	s.start(Routes)
	s.net.known["n1"] = s.self
	must(t, s.net.sync(t.Context()))
	if files, _ := os.ReadDir(s.net.ConfigDir); len(files) != 0 || s.net.Problem() != "the Node has no podCIDR yet" {
		t.Errorf("without a range there are %v, and the problem %q", files, s.net.Problem())
	}
	watcher, err := fsnotify.NewBufferedWatcher(100)
	must(t, err)
	defer func() { _ = watcher.Close() }()
	must(t, watcher.Add(s.net.ConfigDir))
	s.net.known["n1"] = at("n1", "10.244.1.0/24", "192.0.2.1")
	must(t, s.net.sync(t.Context()))
	expectNoticed(t, watcher)
	text, err := os.ReadFile(filepath.Join(s.net.ConfigDir, "10-keelson.conflist"))
	if err != nil || !strings.Contains(string(text), `"subnet": "10.244.1.0/24"`) || s.net.Problem() != "" {
		t.Errorf("%s: %v, problem %q", text, err, s.net.Problem())
	}
	// A firewall that another program has removed is restored by the next sync.
	must(t, removeTable(Table("keel0")))
	must(t, s.net.sync(t.Context()))
	if !hasFirewall(Firewall{Table: Table("keel0")}) {
		t.Error("the firewall table stays away")
	}
}
