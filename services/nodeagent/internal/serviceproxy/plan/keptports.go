package plan

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/kit/keptport"
)

var protocolNames = map[uint8]string{6: keptport.TCP, 17: keptport.UDP, 132: keptport.SCTP}

// isKept reports whether the destination is kept from the Service's author.
func (d *decision) isKept(to Destination, rank Rank) bool {
	target, protocol := netip.AddrPortFrom(to.Addr, to.Port), protocolNames[to.Protocol]
	ours := slices.Contains(d.Node.Addresses, to.Addr)
	for _, k := range d.Node.KeptPorts {
		anywhere := !k.Address.IsValid()
		if k.NodePorts && rank == ByNodePort || anywhere && !ours || !k.Has(to.Addr, protocol, to.Port) {
			continue
		}
		d.problem("%s is kept for %s of this node; it is left out", target, k.Keeper)
		return true
	}
	if d.isOfAPIServer(target, protocol) {
		return true
	}
	// Neither the author nor a node chooses a load balancer's address.
	return rank == ByExternalIP && (d.isKeptByPeer(target, protocol) || d.inClusterRange(to.Addr))
}

// APIServerService is the Service whose endpoints are the API servers.
const APIServerService = "default/kubernetes"

// APIServers returns the addresses and ports of the API servers, ready or not, from the slices of APIServerService.
// All of them speak TCP.
func APIServers(all []*discoveryv1.EndpointSlice) []netip.AddrPort {
	var out []netip.AddrPort
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			for _, text := range e.Addresses {
				address, err := netip.ParseAddr(text)
				for _, p := range slice.Ports {
					if err == nil && p.Port != nil && validPort(*p.Port) {
						out = append(out, netip.AddrPortFrom(address.Unmap(), uint16(*p.Port)))
					}
				}
			}
		}
	}
	return out
}

// isOfAPIServer reports whether an API server is reached there, at this or another address of its machine.
func (d *decision) isOfAPIServer(target netip.AddrPort, protocol string) bool {
	if protocol != keptport.TCP {
		return false
	}
	for _, api := range d.APIServers {
		if api.Port() == target.Port() && (api == target || d.Peers.sameNode(api.Addr(), target.Addr())) {
			d.problem("%s is where the API server is reached; it is left out", target)
			return true
		}
	}
	return false
}

// isKeptByPeer reports whether another node needs the destination: for its agent, or for a port that every node
// keeps.
func (d *decision) isKeptByPeer(target netip.AddrPort, protocol string) bool {
	if name := d.Peers.agentAt(target); name != "" && protocol == keptport.TCP {
		d.problem("%s is where the agent of node %s is asked; it is left out", target, name)
		return true
	}
	name, is := d.Peers.At(target.Addr())
	for _, k := range d.Node.KeptPorts {
		if is && k.AtPeers() && k.Covers(protocol, target.Port()) {
			d.problem("%s is kept for %s of node %s; it is left out", target, k.Keeper, name)
			return true
		}
	}
	return false
}

// inClusterRange reports whether the address is in the range of Pods or Services.
func (d *decision) inClusterRange(address netip.Addr) bool {
	for _, taken := range d.Node.ClusterRanges {
		if taken.Contains(address) {
			d.problem("spec.externalIPs: %s is of %s, the range of Pods or Services; it is left out", address, taken)
			return true
		}
	}
	return false
}
