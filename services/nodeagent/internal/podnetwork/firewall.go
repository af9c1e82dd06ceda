package podnetwork

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nftrule"
)

// setFirewall recreates the tables of this node's Pods in one transaction. It speaks netlink itself; neither
// iptables nor nft is needed.
func setFirewall(f Firewall) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	for _, six := range []bool{false, true} {
		t := tableOf(f.Table, six)
		conn.AddTable(t) // so that deleting it does not fail
		conn.DelTable(t)
		if !f.needs(six) {
			continue
		}
		conn.AddTable(t)
		if hidesAny(f.Own, six) {
			hide(conn, t, six, f.Own, f.Cluster)
		}
		if err := guard(conn, t, six, f); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", f.Table, err)
	}
	return nil
}

// guard drops what Pods may not send, before any other rule sees it, and packets that only pretend to come from
// another node's tunnel.
func guard(conn *nftables.Conn, t *nftables.Table, six bool, f Firewall) error {
	chain := conn.AddChain(&nftables.Chain{
		Name: "guard", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting,
		Priority: nftables.ChainPriorityRaw})
	drop := func(match ...[]expr.Any) {
		conn.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: append(slices.Concat(match...), nftrule.Drop()...)})
	}
	fromPods := nftrule.FromInterfaces(f.Bridge + "\x00")
	if !six {
		drop(fromPods, nftrule.Address(nftrule.Destination, expr.CmpOpEq, loopback))
	}
	foreign := slices.Clone(fromPods)
	for _, source := range f.sources(six) {
		foreign = append(foreign, nftrule.Address(nftrule.Source, expr.CmpOpNeq, source)...)
	}
	drop(foreign)
	if f.VXLANID == 0 {
		return nil
	}
	nodes := &nftables.Set{Table: t, Name: "nodes", KeyType: nftables.TypeIPAddr}
	if six {
		nodes.KeyType = nftables.TypeIP6Addr
	}
	var elements []nftables.SetElement
	for _, node := range f.nodes(six) {
		elements = append(elements, nftables.SetElement{Key: node.AsSlice()})
	}
	if err := conn.AddSet(nodes, elements); err != nil {
		return fmt.Errorf("writing the nodes into the firewall table %s: %w", f.Table, err)
	}
	drop(fromPods, ofTunnel(f.VXLANID))
	drop(nftrule.Local(), ofTunnel(f.VXLANID), nftrule.NotIn(nftrule.Source, six, nodes))
	return nil
}

// ofTunnel matches packets of the VXLAN network of this number. The number is in the header that follows UDP's.
func ofTunnel(id int) []expr.Any {
	const numberOffset, numberLength = 8 + 4, 3
	number := []byte{byte(id >> 16), byte(id >> 8), byte(id)}
	return append(nftrule.Port(unix.IPPROTO_UDP, VXLANPort),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: numberOffset, Len: numberLength},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: number})
}

func tableOf(name string, six bool) *nftables.Table {
	if six {
		return &nftables.Table{Family: nftables.TableFamilyIPv6, Name: name}
	}
	return &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}
}

// hide masquerades what leaves the cluster with the machine's address.
func hide(conn *nftables.Conn, t *nftables.Table, six bool, own, cluster []netip.Prefix) {
	leaving := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource})
	for _, prefix := range own {
		if !hidden(prefix, six) {
			continue
		}
		match := nftrule.Address(nftrule.Source, expr.CmpOpEq, prefix)
		for _, all := range cluster {
			if all.Addr().Is6() == six {
				match = append(match, nftrule.Address(nftrule.Destination, expr.CmpOpNeq, all)...)
			}
		}
		conn.AddRule(&nftables.Rule{Table: t, Chain: leaving, Exprs: append(match, nftrule.Masquerade()...)})
	}
}

// hasFirewall reports whether the tables exist.
func hasFirewall(f Firewall) bool {
	conn, err := nftables.New()
	if err != nil {
		return false
	}
	for _, six := range []bool{false, true} {
		_, err := conn.ListTableOfFamily(f.Table, tableOf(f.Table, six).Family)
		if err != nil && f.needs(six) {
			return false
		}
	}
	return true
}

// CanGuard reports whether the kernel accepts rules for the links of single Pods, in a table of that name; false
// for an empty name.
func CanGuard(table string) bool {
	if table == "" {
		return false
	}
	conn, err := nftables.New()
	if err != nil {
		return false
	}
	conn.AddTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: table})
	return conn.Flush() == nil
}
