package podnetwork

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"keelson.dev/kit/nftrule"
)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// setFirewall writes the tables of this node's Pods anew, at once: what they send out of the cluster's ranges leaves
// under the machine's address, and nothing that they send reaches the machine's loopback addresses. It speaks to the
// kernel itself; neither iptables nor nft is needed.
func setFirewall(table, bridge string, own, cluster []netip.Prefix) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	for _, six := range []bool{false, true} {
		t := tableOf(table, six)
		conn.AddTable(t) // or there might be none to delete
		conn.DelTable(t)
		if !six || hidesAny(own, six) {
			conn.AddTable(t)
			hide(conn, t, six, own, cluster)
		}
	}
	t := tableOf(table, false)
	guard := conn.AddChain(&nftables.Chain{
		Name: "guard", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting,
		Priority: nftables.ChainPriorityRaw})
	conn.AddRule(&nftables.Rule{Table: t, Chain: guard, Exprs: slices.Concat(nftrule.FromInterfaces(bridge+"\x00"),
		nftrule.Address(nftrule.Destination, expr.CmpOpEq, loopback), nftrule.Drop())})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", table, err)
	}
	return nil
}

func tableOf(name string, six bool) *nftables.Table {
	if six {
		return &nftables.Table{Family: nftables.TableFamilyIPv6, Name: name}
	}
	return &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}
}

// hide gives the machine's address to what leaves the cluster.
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

// hasFirewall says whether the tables for the ranges are there.
func hasFirewall(table string, own []netip.Prefix) bool {
	conn, err := nftables.New()
	if err != nil {
		return false
	}
	for _, six := range []bool{false, true} {
		_, err := conn.ListTableOfFamily(table, tableOf(table, six).Family)
		if err != nil && (!six || hidesAny(own, six)) {
			return false
		}
	}
	return true
}
