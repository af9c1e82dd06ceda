package podnetwork

import (
	"net/netip"
	"slices"
)

// Firewall is what the firewall tables of a node's Pods follow from:
//
//   - what Pods send out of the cluster's ranges leaves under the machine's address;
//   - nothing that they send reaches the machine's loopback addresses, claims an address that is not of this node's
//     ranges, or enters the tunnel between the nodes from beside it;
//   - nothing enters the tunnel but what another node sends.
type Firewall struct {
	Table, Bridge string
	Own, Cluster  []netip.Prefix
	// VXLANID is the number of the tunnel's network; zero without a tunnel.
	VXLANID int
	// Nodes are the sorted addresses of all nodes, including this one; empty without a tunnel.
	Nodes []netip.Addr
}

var (
	loopback    = netip.MustParsePrefix("127.0.0.0/8")
	unspecified = netip.MustParsePrefix("::/128")
	linkLocal   = netip.MustParsePrefix("fe80::/10")
)

// firewallOf returns the firewall of a node whose plan is known.
func firewallOf(config Config, plan Plan, own Node, others []Node) Firewall {
	f := Firewall{Table: Table(config.CNI.Bridge), Bridge: config.CNI.Bridge, Own: own.Ranges, Cluster: config.Cluster}
	if plan.Tunnel == nil {
		return f
	}
	f.VXLANID = config.VXLANID
	for _, node := range append([]Node{own}, others...) {
		f.Nodes = append(f.Nodes, node.Addresses...)
	}
	slices.SortFunc(f.Nodes, netip.Addr.Compare)
	f.Nodes = slices.Compact(f.Nodes)
	return f
}

func (f Firewall) equal(other Firewall) bool {
	return f.Table == other.Table && f.Bridge == other.Bridge && f.VXLANID == other.VXLANID &&
		slices.Equal(f.Own, other.Own) && slices.Equal(f.Cluster, other.Cluster) && slices.Equal(f.Nodes, other.Nodes)
}

// needs reports whether a table of the family is needed: for IPv6 only if a Pod or a node has such an address.
func (f Firewall) needs(six bool) bool {
	return !six || len(f.nodes(six)) > 0 ||
		slices.ContainsFunc(f.Own, func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// sources returns the ranges from which Pods send: this node's and, for IPv6, those used for neighbor discovery and
// duplicate address detection.
func (f Firewall) sources(six bool) []netip.Prefix {
	own := slices.DeleteFunc(slices.Clone(f.Own), func(p netip.Prefix) bool { return p.Addr().Is6() != six })
	if six {
		own = append(own, linkLocal, unspecified)
	}
	return own
}

func (f Firewall) nodes(six bool) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(a netip.Addr) bool { return a.Is6() != six })
}
