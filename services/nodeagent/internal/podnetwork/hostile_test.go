package podnetwork

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"keelson.dev/kit/nettest"
)

// A packet that claims an address of another node's Pod does not leave its own node.
func TestPodsSendFromTheirNodesRangeOnly(t *testing.T) {
	sites := cluster(t, Routes, false)
	one, two, three := sites[0], sites[1], sites[2]
	claimed := two.address
	one.pod.Do(func() {
		link, err := netlink.LinkByName("pod-in")
		must(t, err)
		must(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(claimed, 32))}))
	})
	attack := func() string {
		return hears(t, three.pod, three.address, 7777, func() {
			send(t, one.pod, claimed, three.address, 7777, []byte("forged"))
		}, func() { send(t, one.pod, one.address, three.address, 7777, []byte("honest")) })
	}
	if got := attack(); got != "honest" {
		t.Errorf("the Pod heard %q", got)
	}
	one.Do(func() { must(t, setFirewall(Firewall{Table: Table("keel0"), Bridge: "other"})) })
	if got := attack(); got != "forged" {
		t.Errorf("without the rule the Pod heard %q too, so the test shows nothing", got)
	}
}

// A packet of another node's tunnel is accepted only from another node: not from a Pod of that node, whose packets
// leave under the node's address, nor from a Pod of this node, nor from a stranger on the nodes' network.
func TestNothingEntersTheTunnelFromBeside(t *testing.T) {
	sites := cluster(t, VXLAN, false)
	one, two, three := sites[0], sites[1], sites[2]
	stranger := nettest.NewPeer(t, "x", "segment", prefix("192.0.2.77/24"), netip.MustParseAddr("192.0.2.254"))
	forged := encapsulated(75, three, two, []byte("forged"))
	open := func(s *site) {
		s.Do(func() {
			must(t, setFirewall(Firewall{Table: Table("keel0"), Bridge: "other", Own: s.self.Ranges,
				Cluster: s.net.Cluster}))
		})
	}
	for name, row := range map[string]struct {
		from   *nettest.Peer
		source netip.Addr
		// dropping are the nodes whose firewalls drop it.
		dropping []*site
	}{
		"a Pod of another node": {one.pod, one.address, []*site{one}},
		"a Pod of the node":     {two.pod, two.address, []*site{two}},
		"a stranger":            {stranger, netip.MustParseAddr("192.0.2.77"), []*site{two}},
	} {
		t.Run(name, func(t *testing.T) {
			meet(sites)
			attack := func() string {
				return hears(t, two.pod, two.address, 7777, func() {
					send(t, row.from, row.source, two.self.Addresses[0], VXLANPort, forged)
				}, func() { send(t, three.pod, three.address, two.address, 7777, []byte("honest")) })
			}
			if got := attack(); got != "honest" {
				t.Errorf("the Pod heard %q", got)
			}
			for _, s := range row.dropping {
				open(s)
			}
			if got := attack(); got != "forged" {
				t.Errorf("without the rule the Pod heard %q too, so the test shows nothing", got)
			}
			for _, s := range row.dropping {
				s.net.firewall = nil // so that it is written again
			}
		})
	}
	expectAll(t, sites)
}

// Other programs' networks on the same port keep working.
func TestOtherTunnelsPass(t *testing.T) {
	sites := cluster(t, VXLAN, false)
	one, two := sites[0], sites[1]
	other := encapsulated(76, one, two, []byte("another network"))
	two.Do(func() { must(t, kernel{tunnel: "keel0x"}.ensureTunnel(Plan{})) }) // its port is free for the test
	if got := hears(t, two.Peer, two.self.Addresses[0], VXLANPort, func() {
		send(t, one.pod, one.address, two.self.Addresses[0], VXLANPort, other)
	}, func() {}); got != string(other) {
		t.Errorf("heard %q", got)
	}
}

// encapsulated is a packet of the VXLAN network with that number in which the Pod of one node sends a message to
// that of another, without the UDP and IP headers around it.
func encapsulated(number uint32, from, to *site, said []byte) []byte {
	const headers, proto = 20 + 8, 17
	source, target := hardwareOf(from.self), hardwareOf(to.self)
	packet := binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, number<<8)
	packet = append(append(append(packet, target[:]...), source[:]...), 8, 0)
	begin := len(packet)
	packet = binary.BigEndian.AppendUint16(append(packet, 0x45, 0), uint16(headers+len(said)))
	packet = append(packet, 0, 0, 0, 0, 64, proto, 0, 0)
	packet = append(append(packet, from.address.AsSlice()...), to.address.AsSlice()...)
	binary.BigEndian.PutUint16(packet[begin+10:], nettest.Checksum(packet[begin:]))
	for _, field := range []int{7777, 7777, 8 + len(said), 0} { // ports, length, no checksum
		packet = binary.BigEndian.AppendUint16(packet, uint16(field))
	}
	return append(packet, said...)
}

// send sends one datagram from an address of the peer.
func send(t *testing.T, p *nettest.Peer, from, to netip.Addr, port uint16, said []byte) {
	p.Do(func() {
		conn, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)),
			net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, port)))
		if err == nil {
			_, err = conn.Write(said)
			_ = conn.Close()
		}
		must(t, err)
	})
}

// hears returns the first message at an address of the peer after both have been sent, on the port that they use.
func hears(t *testing.T, p *nettest.Peer, at netip.Addr, port uint16, first, second func()) string {
	var socket *net.UDPConn
	var err error
	p.Do(func() { socket, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, port))) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	first()
	second()
	must(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
	buffer := make([]byte, 1500)
	n, err := socket.Read(buffer)
	must(t, err)
	return string(buffer[:n])
}
