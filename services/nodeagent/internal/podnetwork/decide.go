package podnetwork

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Mode is how Pods of different nodes reach each other.
type Mode string

// The modes.
const (
	// Routes leads each node's range to the node's address: all nodes are on one segment.
	Routes Mode = "routes"
	// VXLAN carries what is between Pods inside of UDP packets between the nodes, wherever they are.
	VXLAN Mode = "vxlan"
	// None leaves Pods' networks to others.
	None Mode = "none"
)

// Node is what counts of a Node.
type Node struct {
	Name      string
	Ranges    []netip.Prefix
	Addresses []netip.Addr
}

// Of returns what counts of a Node. What is no range or address is left out.
func Of(node *corev1.Node) Node {
	n := Node{Name: node.Name}
	for _, text := range node.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			n.Ranges = append(n.Ranges, prefix.Masked())
		}
	}
	for _, address := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
			n.Addresses = append(n.Addresses, ip.Unmap())
		}
	}
	return n
}

func (n Node) equal(other Node) bool {
	return n.Name == other.Name && slices.Equal(n.Ranges, other.Ranges) && slices.Equal(n.Addresses, other.Addresses)
}

// address is the node's first one of a family.
func (n Node) address(like netip.Addr) netip.Addr {
	for _, address := range n.Addresses {
		if address.Is4() == like.Is4() {
			return address
		}
	}
	return netip.Addr{}
}

// Input is all that a decision depends on.
type Input struct {
	Mode Mode
	// Cluster are the ranges of all Pods.
	Cluster []netip.Prefix
	Own     Node
	Others  []Node
	// MTU is what the network between the nodes carries at once.
	MTU int
}

// Plan is the network as it shall be.
type Plan struct {
	// Gateways are the addresses of the bridge, each with the range of this node's Pods.
	Gateways []netip.Prefix
	// MTU is what Pods send at once.
	MTU    int
	Routes []Route
	// Tunnel is nil unless the mode is VXLAN.
	Tunnel *Tunnel
	// Problems are about other nodes that Pods here cannot reach.
	Problems []string
}

// Route leads a range of another node to its address.
type Route struct {
	Range   netip.Prefix
	Gateway netip.Addr
}

// Decide plans the network of a node that has its ranges.
func Decide(in Input) Plan {
	plan := Plan{MTU: in.MTU}
	for _, own := range in.Own.Ranges {
		plan.Gateways = append(plan.Gateways, netip.PrefixFrom(own.Addr().Next(), own.Bits()))
	}
	if in.Mode == VXLAN {
		plan.Tunnel = newTunnel(in.Own)
		plan.MTU -= plan.Tunnel.overhead()
	}
	others := slices.Clone(in.Others)
	slices.SortFunc(others, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	owners := map[netip.Prefix]string{}
	for _, own := range in.Own.Ranges {
		owners[own] = in.Own.Name
	}
	for _, other := range others {
		if other.Name != in.Own.Name {
			plan.reach(in, other, owners)
		}
	}
	return plan
}

// reach leads the ranges of another node there.
func (p *Plan) reach(in Input, other Node, owners map[netip.Prefix]string) {
	for i, prefix := range other.Ranges {
		if taken := overlapping(prefix, owners); taken != "" {
			p.Problems = append(p.Problems, fmt.Sprintf("the range %s of node %s overlaps one of node %s", prefix,
				other.Name, taken))
			continue
		}
		if !inside(prefix, in.Cluster) {
			p.Problems = append(p.Problems, fmt.Sprintf("the range %s of node %s is not of --cluster-cidr", prefix,
				other.Name))
			continue
		}
		gateway := other.address(prefix.Addr())
		if p.Tunnel != nil {
			gateway = p.Tunnel.reach(other, prefix, i == 0)
		}
		if !gateway.IsValid() {
			p.Problems = append(p.Problems, fmt.Sprintf("node %s has no InternalIP by which its range %s is reached",
				other.Name, prefix))
			continue
		}
		owners[prefix] = other.Name
		p.Routes = append(p.Routes, Route{prefix, gateway})
	}
}

func overlapping(prefix netip.Prefix, owners map[netip.Prefix]string) string {
	if name, taken := owners[prefix]; taken {
		return name
	}
	for other, name := range owners {
		if other.Bits() != prefix.Bits() && other.Overlaps(prefix) {
			return name
		}
	}
	return ""
}

func inside(prefix netip.Prefix, ranges []netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool {
		return r.Bits() <= prefix.Bits() && r.Contains(prefix.Addr())
	})
}
