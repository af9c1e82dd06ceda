package plan

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Peers are the addresses of all nodes and the ports of their agents. The zero value has none.
type Peers struct {
	nodes map[string]peerNode
	// byAddress maps an address to the sorted names of the nodes that report it.
	byAddress map[netip.Addr][]string
}

// peerNode is one node of Peers.
type peerNode struct {
	addresses []netip.Addr
	agent     uint16
}

func peerOf(node *corev1.Node) peerNode {
	p := peerNode{agent: uint16(node.Status.DaemonEndpoints.KubeletEndpoint.Port)}
	for _, address := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(address.Address); err == nil && !slices.Contains(p.addresses, ip.Unmap()) {
			p.addresses = append(p.addresses, ip.Unmap())
		}
	}
	return p
}

// Set replaces what is known of a Node and reports whether that changed.
func (p *Peers) Set(node *corev1.Node) bool {
	now := peerOf(node)
	before, there := p.nodes[node.Name]
	if there && before.agent == now.agent && slices.Equal(before.addresses, now.addresses) {
		return false
	}
	p.Remove(node)
	if p.nodes == nil {
		p.nodes, p.byAddress = map[string]peerNode{}, map[netip.Addr][]string{}
	}
	p.nodes[node.Name] = now
	for _, address := range now.addresses {
		names := append(p.byAddress[address], node.Name)
		slices.Sort(names)
		p.byAddress[address] = names
	}
	return true
}

// Remove forgets a Node.
func (p *Peers) Remove(node *corev1.Node) {
	for _, address := range p.nodes[node.Name].addresses {
		p.byAddress[address] = slices.DeleteFunc(p.byAddress[address], func(name string) bool {
			return name == node.Name
		})
		if len(p.byAddress[address]) == 0 {
			delete(p.byAddress, address)
		}
	}
	delete(p.nodes, node.Name)
}

// At returns the first node, by name, that has the address.
func (p *Peers) At(address netip.Addr) (string, bool) {
	if p == nil || len(p.byAddress[address]) == 0 {
		return "", false
	}
	return p.byAddress[address][0], true
}

// sameNode reports whether a node has both addresses.
func (p *Peers) sameNode(one, other netip.Addr) bool {
	return p != nil && slices.ContainsFunc(p.byAddress[one], func(name string) bool {
		return slices.Contains(p.byAddress[other], name)
	})
}

// agentAt returns the node whose agent listens at that address and port; empty for none.
func (p *Peers) agentAt(target netip.AddrPort) string {
	if p == nil {
		return ""
	}
	for _, name := range p.byAddress[target.Addr()] {
		if p.nodes[name].agent == target.Port() {
			return name
		}
	}
	return ""
}

// NamesAddresses reports whether a Service has addresses that its author or a load balancer names: which of them it
// gets depends on the nodes and the API servers.
func NamesAddresses(s *corev1.Service) bool {
	return len(s.Spec.ExternalIPs) > 0 || len(s.Status.LoadBalancer.Ingress) > 0
}
