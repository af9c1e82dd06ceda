package serviceproxy

import (
	"net/netip"
	"slices"

	"keelson.dev/kit/keptport"
)

var protocolNames = map[uint8]string{6: keptport.TCP, 17: keptport.UDP, 132: keptport.SCTP}

// kept tells whether the key is none that the Service's author can have.
func (d *decision) kept(key Key, rank Rank) bool {
	target, protocol := netip.AddrPortFrom(key.Addr, key.Port), protocolNames[key.Protocol]
	mine := slices.Contains(d.Node.Addresses, key.Addr)
	for _, k := range d.Node.Kept {
		anywhere := !k.Address.IsValid()
		if k.NodePorts && rank == ByNodePort || anywhere && !mine || !k.Has(key.Addr, protocol, key.Port) {
			continue
		}
		d.problem("%s is kept for %s of this node; it is left out", target, k.Keeper)
		return true
	}
	// What a load balancer was given is no author's choice, and no node's to claim.
	return rank == ByExternalIP && (d.keptByPeer(target, protocol) || d.ofRange(key.Addr))
}

// keptByPeer tells whether another node is asked there: by its agent, or by what it has like this one.
func (d *decision) keptByPeer(target netip.AddrPort, protocol string) bool {
	if name := d.Peers.agentAt(target); name != "" && protocol == keptport.TCP {
		d.problem("%s is where the agent of node %s is asked; it is left out", target, name)
		return true
	}
	name, is := d.Peers.at(target.Addr())
	for _, k := range d.Node.Kept {
		if is && k.AtPeers() && k.Covers(protocol, target.Port()) {
			d.problem("%s is kept for %s of node %s; it is left out", target, k.Keeper, name)
			return true
		}
	}
	return false
}

// ofRange tells whether the address is a Pod's or a Service's, by now or later.
func (d *decision) ofRange(address netip.Addr) bool {
	for _, taken := range d.Node.Ranges {
		if taken.Contains(address) {
			d.problem("spec.externalIPs: %s is of %s, the range of Pods or Services; it is left out", address, taken)
			return true
		}
	}
	return false
}
