package podnetwork

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"keelson.dev/kit/nettest"
)

// Packets over IPv6 are masqueraded for Pods to whose addresses networks outside have no route; other addresses are
// global.
func TestWhatLeavesTheClusterOverIPv6(t *testing.T) {
	for pods, seen := range map[string]string{"fd00:0:0:1::": "2001:db8:1::1", "2001:db8:2:1::": "2001:db8:2:1::5"} {
		t.Run(pods, func(t *testing.T) {
			own := prefix(pods + "/64")
			one := dualStack(t, own)
			beyond := netip.MustParseAddr("2001:db8:1::254")
			if got := one.seenBy(beyond); got != seen {
				t.Errorf("beyond the cluster the Pod comes from %s, want %s", got, seen)
			}
			// Addresses inside the cluster see the Pod itself.
			link, err := netlink.LinkByName("segment")
			must(t, err)
			other := netip.MustParseAddr(strings.Replace(pods, ":1::", ":2::", 1) + "5")
			must(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(other, 128)), Flags: noDAD}))
			one.Do(func() {
				must(t, netlink.RouteAdd(&netlink.Route{Dst: ipNet(netip.PrefixFrom(other, 128)),
					Gw: beyond.AsSlice()}))
			})
			if got := one.seenBy(other); got != pods+"5" {
				t.Errorf("within the cluster the Pod comes from %s", got)
			}
		})
	}
}

// noDAD is IFA_F_NODAD: the address is usable at once.
const noDAD = 2

// dualStack returns the first node of a cluster with Pods of both families; own is its IPv6 range.
func dualStack(t *testing.T, own netip.Prefix) *site {
	t.Helper()
	one := cluster(t, Routes, false)[0]
	address := func(link string, prefix netip.Prefix) {
		found, err := netlink.LinkByName(link)
		must(t, err)
		must(t, netlink.AddrAdd(found, &netlink.Addr{IPNet: ipNet(prefix), Flags: noDAD}))
	}
	address("segment", prefix("2001:db8:1::254/64"))
	must(t, netlink.RouteAdd(&netlink.Route{Dst: ipNet(own), Gw: net.ParseIP("2001:db8:1::1")}))
	one.Do(func() { address("n1-in", prefix("2001:db8:1::1/64")) })
	one.self = at("n1", "10.244.1.0/24", own.String(), "192.0.2.1", "2001:db8:1::1")
	one.net.Cluster = append(one.net.Cluster, netip.PrefixFrom(own.Addr(), 48).Masked())
	one.net.kernel.cluster = one.net.Cluster
	one.net.problem = problemNoRange // the firewall is written again, as for a node that has just got its ranges
	one.net.known["n1"] = one.self
	one.sync()
	one.pod.Do(func() {
		address("pod-in", netip.PrefixFrom(own.Addr().Next().Next().Next().Next().Next(), 64))
		must(t, netlink.RouteAdd(&netlink.Route{Dst: ipNet(prefix("::/0")), Gw: own.Addr().Next().AsSlice()}))
	})
	return one
}

// seenBy returns the address of the Pod as the machine between the nodes sees it.
func (s *site) seenBy(address netip.Addr) string {
	s.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "7779"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer listener.Close()
	s.pod.Do(func() {
		conn, dialed := net.DialTimeout("tcp", listener.Addr().String(), patience)
		if err = dialed; err == nil {
			conn.Close()
		}
	})
	if err != nil {
		return err.Error()
	}
	conn, err := listener.Accept()
	if err != nil {
		return err.Error()
	}
	conn.Close()
	return conn.RemoteAddr().(*net.TCPAddr).IP.String()
}

// The bridge uses its addresses as soon as a Pod exists: before that it would not ask for Pods' hardware addresses.
func TestTheBridgeIsUsableAtOnce(t *testing.T) {
	nettest.Own(t)
	// Duplicate address detection takes longer than this test waits.
	must(t, os.WriteFile("/proc/sys/net/ipv6/conf/default/dad_transmits", []byte("100"), 0))
	changes, done := make(chan netlink.AddrUpdate, 100), make(chan struct{})
	must(t, netlink.AddrSubscribe(changes, done))
	defer close(done)
	k := kernel{bridge: "keel0", tunnel: tunnelName("keel0"), cluster: prefixes("fd00::/48")}
	_, err := k.apply(Decide(Input{Mode: Routes, Own: at("n1", "fd00:0:0:1::/64", "2001:db8:1::1"), MTU: 1500}))
	must(t, err)
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "pod"
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "pod-in"}))
	bridge, err := netlink.LinkByName("keel0")
	must(t, err)
	for _, name := range []string{"pod", "pod-in"} {
		link, err := netlink.LinkByName(name)
		must(t, err)
		if name == "pod" {
			must(t, netlink.LinkSetMaster(link, bridge))
		}
		must(t, netlink.LinkSetUp(link))
	}
	for {
		addresses, err := netlink.AddrList(bridge, netlink.FAMILY_V6)
		must(t, err)
		if len(addresses) == 2 && !slices.ContainsFunc(addresses, func(a netlink.Addr) bool {
			return a.Flags&tentative != 0
		}) {
			return
		}
		select {
		case <-changes:
		case <-time.After(patience):
			t.Fatalf("the bridge has the addresses %v, with flags %x of the last", addresses,
				addresses[len(addresses)-1].Flags)
		}
	}
}

// A new Pod does not change the bridge's hardware address: what others send to the former one would be lost until
// they ask again, for IPv6 most of a minute.
func TestTheBridgeKeepsItsHardware(t *testing.T) {
	nettest.Own(t)
	k := kernel{bridge: "keel0", tunnel: tunnelName("keel0"), cluster: prefixes("10.244.0.0/16")}
	_, err := k.apply(Decide(Input{Mode: Routes, Own: at("n1", "10.244.1.0/24", "192.0.2.1"), MTU: 1500}))
	must(t, err)
	before, err := netlink.LinkByName("keel0")
	must(t, err)
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "pod", MasterIndex: before.Attrs().Index,
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}, PeerName: "pod-in"}))
	after, err := netlink.LinkByName("keel0")
	must(t, err)
	if was, is := before.Attrs().HardwareAddr.String(), after.Attrs().HardwareAddr.String(); was != is {
		t.Errorf("with a Pod the bridge is %s, and was %s", is, was)
	}
}

// tentative is IFA_F_TENTATIVE.
const tentative = 0x40

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, prefix(text))
	}
	return all
}
