package podnetwork

import (
	"net/netip"

	"keelson.dev/kit/linkaddress"
)

// Tunnel is a node's VXLAN device and what it knows of the other nodes' devices. The device learns nothing from
// packets.
type Tunnel struct {
	// Local is the node's address between the nodes; Hardware and Addresses are the device's own.
	Local     netip.Addr
	Hardware  Hardware
	Addresses []netip.Prefix
	Peers     []Peer
}

// Hardware is the hardware address of a tunnel's device.
type Hardware [6]byte

// Peer is the tunnel of another node.
type Peer struct {
	Hardware Hardware
	// Node is the address to which packets for the peer are sent; Addresses are those of the peer's device.
	Node      netip.Addr
	Addresses []netip.Addr
}

// newTunnel returns the device of a node: its addresses are the first ones of the node's ranges, which no Pod gets.
func newTunnel(own Node) *Tunnel {
	t := &Tunnel{Hardware: hardwareOf(own)}
	if len(own.Addresses) > 0 {
		t.Local = own.Addresses[0]
	}
	for _, prefix := range own.Ranges {
		t.Addresses = append(t.Addresses, netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen()))
	}
	return t
}

// overhead is the size of the added headers: Ethernet, VXLAN, UDP and IP.
func (t *Tunnel) overhead() int {
	if t.Local.Is4() {
		return 14 + 8 + 8 + 20
	}
	return 14 + 8 + 8 + 40
}

// reach adds the peer of a node, or a further range of the peer, and returns the gateway to the range; the zero
// Addr if the node has no address of the family in which this one sends.
func (t *Tunnel) reach(other Node, prefix netip.Prefix, first bool) netip.Addr {
	target := other.address(t.Local)
	if !target.IsValid() {
		return target
	}
	if first || len(t.Peers) == 0 || t.Peers[len(t.Peers)-1].Hardware != hardwareOf(other) {
		t.Peers = append(t.Peers, Peer{Hardware: hardwareOf(other), Node: target})
	}
	peer := &t.Peers[len(t.Peers)-1]
	peer.Addresses = append(peer.Addresses, prefix.Addr())
	return prefix.Addr()
}

// hardwareOf computes the same address for a node on every machine, so that nodes need not exchange it: no other
// node has the same first range.
func hardwareOf(node Node) Hardware {
	text := node.Name
	if len(node.Ranges) > 0 {
		text = node.Ranges[0].String()
	}
	return linkaddress.Of(text)
}
