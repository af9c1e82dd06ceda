package podnetwork

import (
	"net/netip"

	"keelson.dev/kit/linkaddress"
)

// Tunnel is the VXLAN device of a node and what it knows of the others. Nothing is learnt from packets.
type Tunnel struct {
	// Local is the node's address between the nodes, Hardware and Addresses are the device's own.
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
	// Node is where its packets go to, Addresses are those of the device.
	Node      netip.Addr
	Addresses []netip.Addr
}

// newTunnel is the device of a node: its addresses are the first of the node's ranges, which no Pod gets.
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

// overhead is what a packet grows by on its way: headers of Ethernet, VXLAN, UDP and IP.
func (t *Tunnel) overhead() int {
	if t.Local.Is4() {
		return 14 + 8 + 8 + 20
	}
	return 14 + 8 + 8 + 40
}

// reach adds the peer of a node, or a further range of it, and returns the gateway to the range; the zero Addr where
// the node has no address that this one can send to.
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

// hardwareOf is the same for a node wherever it is computed, so that nodes need not tell each other: its first range is
// its alone.
func hardwareOf(node Node) Hardware {
	text := node.Name
	if len(node.Ranges) > 0 {
		text = node.Ranges[0].String()
	}
	return linkaddress.Of(text)
}
