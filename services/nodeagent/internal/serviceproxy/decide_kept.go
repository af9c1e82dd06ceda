package serviceproxy

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

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
	if d.keptByAPI(target, protocol) {
		return true
	}
	// What a load balancer was given is no author's choice, and no node's to claim.
	return rank == ByExternalIP && (d.keptByPeer(target, protocol) || d.ofRange(key.Addr))
}

// apiService is the Service whose endpoints are the API servers.
const apiService = "default/kubernetes"

// apiTargets are where the API servers are, be they ready or not. All of them speak TCP.
func apiTargets(all []*discoveryv1.EndpointSlice) []netip.AddrPort {
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

// keptByAPI tells whether an API server is reached there, by this address of its machine or by another one.
func (d *decision) keptByAPI(target netip.AddrPort, protocol string) bool {
	if protocol != keptport.TCP {
		return false
	}
	for _, api := range d.API {
		if api.Port() == target.Port() && (api == target || d.Peers.together(api.Addr(), target.Addr())) {
			d.problem("%s is where the API server is reached; it is left out", target)
			return true
		}
	}
	return false
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
