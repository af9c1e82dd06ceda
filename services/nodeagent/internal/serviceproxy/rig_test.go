package serviceproxy

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/nettest"
	"keelson.dev/services/nodeagent/internal/conntrack"
	"keelson.dev/services/nodeagent/internal/serviceproxy/kernel"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

const (
	servicePort = 80
	podPort     = 8080
	nodePort    = servicetest.NodePort
	bridge      = "pods"
)

var (
	nodeIP   = netip.MustParseAddr("192.0.2.1")
	nodeIP6  = netip.MustParseAddr("2001:db8:1::1")
	podRange = netip.MustParsePrefix("10.244.1.0/24")
	range6   = netip.MustParsePrefix("fd00:1::/64")
)

// machine is a node with two Pods, a Pod of another node, and a client outside the cluster.
type machine struct {
	*proxy
	a, b, remote, stranger *peer
}

// peer is one of these Pods, or the client: it answers everything on podPort with its name.
type peer struct {
	*nettest.Peer
	name      string
	addr, six netip.Addr
	node      string
}

// proxy is a Proxy whose objects the test stores.
type proxy struct {
	*Proxy
	t *testing.T
}

func newProxy(t *testing.T, table string) *proxy {
	services := cache.NewSharedIndexInformer(nil, &corev1.Service{}, 0, cache.Indexers{})
	endpoints := cache.NewSharedIndexInformer(nil, &discoveryv1.EndpointSlice{}, 0, Indexers)
	p := &proxy{New(Config{Table: table, Services: services, Slices: endpoints,
		Conntrack: conntrack.Settings{TCPCloseWait: 90 * time.Second}, Log: zap.NewNop()}), t}
	p.SetNode(plan.Node{Name: "here", Zone: "z1", Addresses: []netip.Addr{nodeIP, nodeIP6},
		PodRanges: []netip.Prefix{podRange, range6}})
	return p
}

// put stores objects, replacing those of the same name, and has the kernel follow.
func (p *proxy) put(objects ...metav1.Object) {
	p.t.Helper()
	for _, object := range objects {
		var err error
		switch o := object.(type) {
		case *corev1.Service:
			err = p.Services.GetStore().Add(o)
			p.changed(o.Namespace + "/" + o.Name)
		case *discoveryv1.EndpointSlice:
			err = p.Slices.GetStore().Add(o)
			p.setSlice(o)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	p.sync()
}

func (p *proxy) sync() {
	p.t.Helper()
	if err := p.Sync(); err != nil {
		p.t.Fatal(err)
	}
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	nettest.Own(t)
	// A link that still checks for duplicates of its addresses does not ask for its neighbors' when it forwards
	// packets.
	must(t, os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0))
	must(t, kernel.EnableForwarding(plan.Node{PodRanges: []netip.Prefix{podRange, range6}}))
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridge
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}))
	address(t, bridge, "10.244.1.1/24")
	address(t, bridge, "fd00:1::1/64")
	up(t, bridge)
	m := &machine{}
	m.a = newPeer(t, "a", bridge, "10.244.1.5/24", "10.244.1.1", "fd00:1::5/64", "fd00:1::1", "here")
	m.b = newPeer(t, "b", bridge, "10.244.1.6/24", "10.244.1.1", "fd00:1::6/64", "fd00:1::1", "here")
	m.remote = newPeer(t, "remote", "", "10.244.2.5/24", "10.244.2.1", "fd00:2::5/64", "fd00:2::1", "there")
	m.stranger = newPeer(t, "stranger", "", "192.0.2.2/24", nodeIP.String(), "2001:db8:1::2/64", nodeIP6.String(), "")
	// A node has a route for addresses that do not exist: else nothing is sent that the rules could redirect.
	for _, gw := range []netip.Addr{m.stranger.addr, m.stranger.six} {
		link, err := netlink.LinkByName("stranger")
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gw.AsSlice()}))
	}
	// That route leads back to where a test's packets come from, which the kernel would report to the sender.
	for _, link := range []string{"all", "stranger"} {
		must(t, os.WriteFile("/proc/sys/net/ipv4/conf/"+link+"/send_redirects", []byte("0"), 0))
	}
	for _, p := range []*peer{m.a, m.b, m.remote} {
		p.serve(t)
	}
	m.proxy = newProxy(t, "keelson-test-services")
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func address(t *testing.T, name, prefix string) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	must(t, err)
	addr, err := netlink.ParseAddr(prefix)
	must(t, err)
	addr.Flags = 0x02 // IFA_F_NODAD: usable at once
	if addr.IP.To4() != nil {
		addr.Flags = 0
	}
	must(t, netlink.AddrAdd(link, addr))
}

func up(t *testing.T, name string) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	must(t, err)
	must(t, netlink.LinkSetUp(link))
}

func newPeer(t *testing.T, name, bridge, prefix, gateway, prefix6, gateway6, node string) *peer {
	t.Helper()
	four, six := netip.MustParsePrefix(prefix), netip.MustParsePrefix(prefix6)
	p := &peer{nettest.NewPeer(t, name, bridge, four, netip.MustParseAddr(gateway)), name, four.Addr(), six.Addr(),
		node}
	if bridge == "" {
		address(t, name, netip.PrefixFrom(netip.MustParseAddr(gateway6), 64).String())
	}
	p.Do(func() {
		address(t, name+"-in", prefix6)
		link, err := netlink.LinkByName(name + "-in")
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway6)}))
	})
	return p
}

// serve answers every connection and datagram to podPort with the peer's name and the client's address.
func (p *peer) serve(t *testing.T) {
	p.Do(func() {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", podPort))
		must(t, err)
		packets, err := net.ListenPacket("udp", fmt.Sprintf(":%d", podPort))
		must(t, err)
		t.Cleanup(func() { listener.Close(); _ = packets.Close() })
		go func() {
			for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
				go func() {
					defer conn.Close()
					buffer := make([]byte, 1)
					for {
						if n, _ := conn.Read(buffer); n == 0 {
							return
						}
						_, _ = fmt.Fprintln(conn, p.name, conn.RemoteAddr().(*net.TCPAddr).IP)
					}
				}()
			}
		}()
		go func() {
			buffer := make([]byte, 1)
			for _, from, err := packets.ReadFrom(buffer); err == nil; _, from, err = packets.ReadFrom(buffer) {
				_, _ = packets.WriteTo([]byte(fmt.Sprintln(p.name, from.(*net.UDPAddr).IP)), from)
			}
		}()
	})
}

// asked is what a client got: the peer that answered and the address that it saw, or the error.
type asked struct {
	who, from string
	err       error
}

func (a asked) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return a.who + " who saw " + a.from
}

// ask connects once.
func ask(network string, to netip.Addr, port int) asked {
	return askFrom(nil, network, to, port)
}

func askFrom(local net.Addr, network string, to netip.Addr, port int) (out asked) {
	dialer := net.Dialer{Timeout: time.Second, LocalAddr: local}
	conn, err := dialer.Dial(network, netip.AddrPortFrom(to, uint16(port)).String())
	if err != nil {
		return asked{err: err}
	}
	defer conn.Close()
	return exchange(conn)
}

func exchange(conn net.Conn) (out asked) {
	if _, err := conn.Write([]byte("x")); err != nil {
		return asked{err: err}
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	buffer := make([]byte, 100)
	n, err := conn.Read(buffer)
	if err != nil {
		return asked{err: err}
	}
	_, _ = fmt.Sscan(string(buffer[:n]), &out.who, &out.from)
	return out
}

var clusterIP, clusterIP6 = netip.MustParseAddr("10.96.0.50"), netip.MustParseAddr("fd00:96::50")

// newService returns a Service of both families with TCP and UDP.
func newService(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: types.UID("web")}}
	s.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: clusterIP.String(),
		ClusterIPs: []string{clusterIP.String(), clusterIP6.String()},
		Ports: []corev1.ServicePort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: servicePort},
			{Name: "udp", Protocol: corev1.ProtocolUDP, Port: servicePort}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// newSlices are the EndpointSlices of a Service with these endpoints.
func newSlices(s *corev1.Service, peers ...*peer) []metav1.Object {
	var out []metav1.Object
	for _, six := range []bool{false, true} {
		slice := newSlice(s, six)
		for _, p := range peers {
			addr := p.addr
			if six {
				addr = p.six
			}
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr.String()},
				NodeName: new(p.node)})
		}
		out = append(out, slice)
	}
	return out
}

func newSlice(s *corev1.Service, six bool) *discoveryv1.EndpointSlice {
	name, kind := s.Name+"-4", discoveryv1.AddressTypeIPv4
	if six {
		name, kind = s.Name+"-6", discoveryv1.AddressTypeIPv6
	}
	slice := &discoveryv1.EndpointSlice{AddressType: kind, ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace,
		Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}}}
	for _, p := range s.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol),
			Port: new(int32(podPort))})
	}
	return slice
}

func (m *machine) here(call func()) { call() }

// dial opens a connection that lasts as long as the test.
func (p *peer) dial(t *testing.T, network string, to netip.Addr, port uint16) net.Conn {
	t.Helper()
	var conn net.Conn
	var err error
	p.Do(func() { conn, err = net.Dial(network, netip.AddrPortFrom(to, port).String()) })
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}
