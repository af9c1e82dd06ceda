package podnetwork

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/conditions"
)

// Mode is how Pods of different nodes reach each other.
type Mode string

// The modes.
const (
	// Routes routes each node's range to the node's address: all nodes must be on one segment.
	Routes Mode = "routes"
	// VXLAN carries packets between Pods inside UDP packets between the nodes, wherever the nodes are.
	VXLAN Mode = "vxlan"
	// None leaves the Pods' network to another program.
	None Mode = "none"
)

// Node is the part of a Node that the network depends on.
type Node struct {
	Name      string
	Ranges    []netip.Prefix
	Addresses []netip.Addr
	// Created and UID order Nodes by their age.
	Created time.Time
	UID     types.UID
	// Silent means that the node has not been heard of for long. Another machine may have taken its addresses.
	Silent bool
}

// Of returns the part of a Node that the network depends on. It leaves out invalid ranges and addresses.
func Of(node *corev1.Node) Node {
	n := Node{Name: node.Name, Created: node.CreationTimestamp.Time, UID: node.UID,
		Silent: conditions.NodeIsSilent(node.Status.Conditions)}
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
	return n.Name == other.Name && n.UID == other.UID && n.Silent == other.Silent && n.Created.Equal(other.Created) &&
		slices.Equal(n.Ranges, other.Ranges) && slices.Equal(n.Addresses, other.Addresses)
}

// byAge orders Nodes: what two of them claim belongs to the first.
func byAge(a, b Node) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name))
}

// address returns the node's first address of the family of like.
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
	// MTU is the largest packet that the network between the nodes carries.
	MTU int
}

// Plan is the desired network.
type Plan struct {
	// Gateways are the addresses of the bridge, each with the range of this node's Pods.
	Gateways []netip.Prefix
	// MTU is the largest packet that Pods send.
	MTU    int
	Routes []Route
	// Tunnel is nil unless the mode is VXLAN.
	Tunnel *Tunnel
	// Problems are about other nodes that Pods here cannot reach.
	Problems []string
	// Conflict is why the node cannot have a network: its range belongs to another. Empty if it can.
	Conflict string
}

// Route routes a range of another node to its address.
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
	have := owners{ranges: map[netip.Prefix]string{}, addresses: map[netip.Addr]string{}}
	for _, address := range in.Own.Addresses {
		have.addresses[address] = in.Own.Name
	}
	nodes := append(slices.Clone(in.Others), in.Own)
	slices.SortFunc(nodes, byAge)
	for _, node := range nodes {
		if node.Name != in.Own.Name {
			plan.reach(in, node, have)
			continue
		}
		for _, own := range in.Own.Ranges {
			if taken := overlapping(own, have.ranges); taken != "" && taken != in.Own.Name {
				return Plan{
					Conflict: fmt.Sprintf("the range %s of this node overlaps one of node %s, which is older: one "+
						"of the two Nodes must be deleted", own, taken),
				}
			}
			have.ranges[own] = in.Own.Name
		}
	}
	slices.SortFunc(plan.Routes, func(a, b Route) int { return a.Range.Compare(b.Range) })
	return plan
}

// owners are the names of the nodes that own ranges and addresses.
type owners struct {
	ranges    map[netip.Prefix]string
	addresses map[netip.Addr]string
}

// reach adds routes to the ranges of another node. A node that claims a range of an older one gets no routes: the
// first range identifies a node's tunnel device.
func (p *Plan) reach(in Input, other Node, have owners) {
	other.Addresses = p.own(other, have)
	for _, prefix := range other.Ranges {
		if taken := overlapping(prefix, have.ranges); taken != "" {
			p.Problems = append(p.Problems, fmt.Sprintf("the range %s of node %s overlaps one of node %s", prefix,
				other.Name, taken))
			return
		}
	}
	for i, prefix := range other.Ranges {
		if !inside(prefix, in.Cluster) {
			p.Problems = append(p.Problems, fmt.Sprintf("the range %s of node %s is not of --cluster-cidr", prefix,
				other.Name))
			continue
		}
		have.ranges[prefix] = other.Name
		gateway := other.address(prefix.Addr())
		if p.Tunnel != nil {
			gateway = p.Tunnel.reach(other, prefix, i == 0)
		}
		if !gateway.IsValid() {
			p.Problems = append(p.Problems, fmt.Sprintf("node %s has no InternalIP by which its range %s is reached",
				other.Name, prefix))
			continue
		}
		p.Routes = append(p.Routes, Route{prefix, gateway})
	}
}

// own returns the addresses of another node that no older node has.
func (p *Plan) own(other Node, have owners) []netip.Addr {
	var out []netip.Addr
	for _, address := range other.Addresses {
		if owner, taken := have.addresses[address]; taken {
			p.Problems = append(p.Problems, fmt.Sprintf("the address %s of node %s is that of node %s", address,
				other.Name, owner))
			continue
		}
		out = append(out, address)
	}
	for _, address := range out {
		if !other.Silent {
			have.addresses[address] = other.Name
		}
	}
	return out
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
