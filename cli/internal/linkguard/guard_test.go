package linkguard

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nettest"
)

const (
	table = "keelson-test-guards"
	owner = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

var (
	gateway  = netip.MustParsePrefix("10.244.1.1/24")
	gateway6 = netip.MustParsePrefix("fd00:0:0:1::1/64")
	own      = netip.MustParsePrefix("10.244.1.5/24")
	own6     = netip.MustParsePrefix("fd00:0:0:1::5/64")
	nobodys  = netip.MustParseAddr("10.244.1.7")
	nobodys6 = netip.MustParseAddr("fd00:0:0:1::7")
	forged   = net.HardwareAddr{2, 0, 0, 0, 0, 7}
)

// machine is a bridge with a Pod, which is the hostile one.
type machine struct {
	*testing.T
	pod      *nettest.Peer
	link     Link
	bridge   netlink.Link
	listener *net.UDPConn
	six      *net.UDPConn
	// deceived is set if the machine has accepted a packet from a false sender.
	deceived bool
}

func newMachine(t *testing.T) *machine {
	nettest.Own(t)
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "pods"
	m := &machine{T: t}
	m.check(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}))
	m.bridge = m.named("pods")
	m.check(os.WriteFile("/proc/sys/net/ipv6/conf/pods/accept_dad", []byte("0"), 0o644))
	for _, address := range []netip.Prefix{gateway, gateway6} {
		m.check(netlink.AddrAdd(m.bridge, addressOf(address)))
	}
	m.check(netlink.LinkSetUp(m.bridge))
	m.pod = nettest.NewPeer(t, "pod", "pods", own, gateway.Addr())
	m.bridge = m.named("pods") // it has taken the hardware address of its first port
	m.link = Link{Name: "pod", Addresses: []netip.Addr{own.Addr(), own6.Addr()}}
	m.pod.Do(func() {
		link := m.named("pod-in")
		copy(m.link.Hardware[:], link.Attrs().HardwareAddr)
		address := addressOf(own6)
		address.Flags = unix.IFA_F_NODAD
		m.check(netlink.AddrAdd(link, address))
	})
	m.listener, m.six = m.listen(gateway), m.listen(gateway6)
	return m
}

func (m *machine) check(err error) {
	m.Helper()
	if err != nil {
		m.Error(err) // some calls are not of the test's goroutine
	}
}

func (m *machine) named(name string) netlink.Link {
	m.Helper()
	link, err := netlink.LinkByName(name)
	m.check(err)
	return link
}

func addressOf(prefix netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: prefix.Addr().AsSlice(),
		Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}}
}

func (m *machine) listen(at netip.Prefix) *net.UDPConn {
	m.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), 7777)))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sends has the Pod put a frame onto its link.
func (m *machine) sends(frame []byte) {
	m.Helper()
	m.pod.Do(func() {
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		m.check(err)
		defer func() { _ = unix.Close(socket) }()
		m.check(unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: m.named("pod-in").Attrs().Index}))
	})
}

// speaks has the Pod say something as itself, and waits until the machine has heard of it: what it has sent before has
// arrived by then, or never will.
func (m *machine) speaks(from, to netip.Prefix, listener *net.UDPConn) {
	m.Helper()
	m.pod.Do(func() {
		conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from.Addr(), 0)),
			net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Addr(), 7777)))
		m.check(err)
		_, err = conn.Write([]byte("honest"))
		m.check(err)
		m.check(conn.Close())
	})
	m.check(listener.SetReadDeadline(time.Now().Add(time.Minute)))
	buffer := make([]byte, 100)
	for {
		n, from, err := listener.ReadFromUDPAddrPort(buffer)
		if err != nil {
			m.Fatalf("the Pod is not heard: %v", err)
		}
		if string(buffer[:n]) == "honest" {
			return
		}
		m.Logf("%s said %q", from, buffer[:n])
		m.deceived = true
	}
}

func (m *machine) ethernet(source net.HardwareAddr, protocol uint16, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(bytes.Clone(m.bridge.Attrs().HardwareAddr), source...),
		protocol), payload...)
}

// arp is the question of a sender after the machine, by which the machine learns of it.
func arp(hardware net.HardwareAddr, sender netip.Addr) []byte {
	packet := append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, hardware...)
	packet = append(append(packet, sender.AsSlice()...), make([]byte, 6)...)
	return append(packet, gateway.Addr().AsSlice()...)
}

// datagram says something to the machine in a sender's name.
func datagram(sender netip.Addr) []byte {
	said := []byte("forged")
	udp := binary.BigEndian.AppendUint16([]byte{30, 97, 30, 97}, uint16(8+len(said))) // port 7777
	udp = append(append(udp, 0, 0), said...)
	if sender.Is6() {
		binary.BigEndian.PutUint16(udp[6:], nettest.Checksum(pseudo(sender, gateway6.Addr(), unix.IPPROTO_UDP, udp)))
		return six(sender, gateway6.Addr(), unix.IPPROTO_UDP, udp)
	}
	header := []byte{0x45, 0, 0, byte(20 + len(udp)), 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	header = append(append(header, sender.AsSlice()...), gateway.Addr().AsSlice()...)
	binary.BigEndian.PutUint16(header[10:], nettest.Checksum(header))
	return append(header, udp...)
}

// icmpv6 is a message of neighbour discovery to the machine.
func icmpv6(sender netip.Addr, kind byte, rest ...byte) []byte {
	message := append([]byte{kind, 0, 0, 0}, rest...)
	whole := pseudo(sender, gateway6.Addr(), unix.IPPROTO_ICMPV6, message)
	binary.BigEndian.PutUint16(message[2:], nettest.Checksum(whole))
	return six(sender, gateway6.Addr(), unix.IPPROTO_ICMPV6, message)
}

func six(from, to netip.Addr, protocol byte, payload []byte) []byte {
	const hops = 255
	header := append([]byte{0x60, 0, 0, 0}, 0, byte(len(payload)), protocol, hops)
	return append(append(append(header, from.AsSlice()...), to.AsSlice()...), payload...)
}

func pseudo(from, to netip.Addr, protocol byte, payload []byte) []byte {
	all := append(append([]byte{}, from.AsSlice()...), to.AsSlice()...)
	return append(append(all, 0, 0, 0, byte(len(payload)), 0, 0, 0, protocol), payload...)
}

// knows returns the hardware address that the machine has for one of a Pod.
func (m *machine) knows(address netip.Addr) string {
	m.Helper()
	list, err := netlink.NeighList(m.bridge.Attrs().Index, netlink.FAMILY_ALL)
	m.check(err)
	for _, entry := range list {
		if entry.IP.Equal(address.AsSlice()) {
			return entry.HardwareAddr.String()
		}
	}
	return ""
}

// learnt reports whether the bridge has learnt a hardware address behind the Pod's link.
func (m *machine) learnt(hardware net.HardwareAddr) bool {
	m.Helper()
	list, err := netlink.NeighList(m.named("pod").Attrs().Index, unix.AF_BRIDGE)
	m.check(err)
	for _, entry := range list {
		if entry.HardwareAddr.String() == hardware.String() {
			return true
		}
	}
	return false
}

// dropped returns how many packets each rule has dropped.
func (m *machine) dropped() []uint64 {
	m.Helper()
	conn, err := nftables.New()
	m.check(err)
	rules, err := conn.GetRules(tableOf(table), &nftables.Chain{Name: chainOf(owner), Table: tableOf(table)})
	m.check(err)
	var counts []uint64
	for _, rule := range rules {
		for _, part := range rule.Exprs {
			if counter, ok := part.(*expr.Counter); ok {
				counts = append(counts, counter.Packets)
			}
		}
	}
	return counts
}

// Each way to take what belongs to another works without the guard, and is dropped by a rule of its own with it. What
// the Pod says as itself is heard either way.
func TestAPodIsHeldToItsAddresses(t *testing.T) {
	advertised := append(append([]byte{0xa0, 0, 0, 0}, nobodys6.AsSlice()...), 2, 1)
	router := append([]byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, 1, 1)
	for name, row := range map[string]struct {
		frame func(m *machine, hardware net.HardwareAddr) []byte
		// rule is the place of the one that drops it.
		rule int
		// harm is what comes of it; nil where the machine itself does not fall for it, but another Pod might.
		harm func(m *machine, hardware net.HardwareAddr) bool
	}{
		"the hardware address of another": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(forged, unix.ETH_P_ARP, arp(h, own.Addr()))
		}, 0, func(m *machine, _ net.HardwareAddr) bool { return m.learnt(forged) }},
		"the hardware address of another in ARP": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(h, unix.ETH_P_ARP, arp(forged, own.Addr()))
		}, 1, func(m *machine, _ net.HardwareAddr) bool { return m.knows(own.Addr()) == forged.String() }},
		"the address of another in ARP": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(h, unix.ETH_P_ARP, arp(h, nobodys))
		}, 2, func(m *machine, h net.HardwareAddr) bool { return m.knows(nobodys) == h.String() }},
		"the IPv4 address of another": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(h, unix.ETH_P_IP, datagram(nobodys))
		}, 3, func(m *machine, _ net.HardwareAddr) bool { return m.deceived }},
		"the IPv6 address of another": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(h, unix.ETH_P_IPV6, datagram(nobodys6))
		}, 4, func(m *machine, _ net.HardwareAddr) bool { return m.deceived }},
		"the address of another in an advertisement": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(h, unix.ETH_P_IPV6, icmpv6(own6.Addr(), advertisement, append(bytes.Clone(advertised),
				h...)...))
		}, 5, func(m *machine, h net.HardwareAddr) bool { return m.knows(nobodys6) == h.String() }},
		"a router": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(h, unix.ETH_P_IPV6, icmpv6(m.link.linkLocal().Addr(), routerAdvertisement,
				append(bytes.Clone(router), h...)...))
		}, 6, func(m *machine, _ net.HardwareAddr) bool {
			routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Dst: nil}, netlink.RT_FILTER_DST)
			m.check(err)
			return len(routes) > 0
		}},
		"another way": {func(m *machine, h net.HardwareAddr) []byte {
			return m.ethernet(h, unix.ETH_P_IPV6, icmpv6(m.link.linkLocal().Addr(), redirect, make([]byte, 36)...))
		}, 7, nil},
		"a frame of neither": {func(m *machine, h net.HardwareAddr) []byte {
			const experimental = 0x88b5
			return m.ethernet(h, experimental, make([]byte, 46))
		}, 8, nil},
		"an advertisement in pieces": {func(m *machine, h net.HardwareAddr) []byte {
			whole := icmpv6(own6.Addr(), advertisement, append(bytes.Clone(advertised), h...)...)[40:]
			first := append([]byte{unix.IPPROTO_ICMPV6, 0, 0, 1, 0, 0, 0, 7}, whole[:8]...)
			return m.ethernet(h, unix.ETH_P_IPV6, six(own6.Addr(), gateway6.Addr(), unix.IPPROTO_FRAGMENT, first))
		}, 9, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, guarded := range []bool{false, true} {
				m := newMachine(t)
				hardware := net.HardwareAddr(m.link.Hardware[:])
				m.check(netlink.NeighAdd(&netlink.Neigh{LinkIndex: m.bridge.Attrs().Index, State: netlink.NUD_STALE,
					IP: nobodys6.AsSlice(), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}))
				if guarded {
					m.check(Set(table, owner, m.link))
				}
				m.sends(row.frame(m, hardware))
				m.speaks(own, gateway, m.listener)
				m.speaks(own6, gateway6, m.six)
				if row.harm != nil && row.harm(m, hardware) == guarded {
					t.Errorf("guarded %v: it has come to harm %v", guarded, !guarded)
				}
				if !guarded {
					continue
				}
				for rule, count := range m.dropped() {
					if (count > 0) != (rule == row.rule) {
						t.Errorf("rule %d has dropped %d packets", rule, count)
					}
				}
			}
		})
	}
}

// A guard is removed with its Pod, whether its link still exists or not; a guard that is set again guards the new
// link.
func TestRemove(t *testing.T) {
	m := newMachine(t)
	for range 2 {
		m.check(Set(table, owner, m.link))
		m.check(Set(table, owner, m.link))
	}
	if rules := m.dropped(); len(rules) != 10 {
		t.Errorf("there are %d rules", len(rules))
	}
	m.check(Set(table, "another", m.link))
	m.check(netlink.LinkDel(m.named("pod")))
	for range 2 {
		m.check(Remove(table, owner))
	}
	m.check(Remove("no-such-table", owner))
	conn, err := nftables.New()
	m.check(err)
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyNetdev)
	m.check(err)
	for _, chain := range chains {
		if chain.Name == owner {
			t.Error("the guard is left")
		}
	}
}
