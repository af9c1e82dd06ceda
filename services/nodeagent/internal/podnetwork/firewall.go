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

// setFirewall writes the table of this node's Pods anew, at once: what they send out of the cluster's ranges leaves
// under the machine's address, and nothing that they send reaches the machine's loopback addresses. It speaks to the
// kernel itself; neither iptables nor nft is needed. IPv6 leaves under its own address.
func setFirewall(table, bridge string, own, cluster []netip.Prefix) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: table}
	conn.AddTable(t) // or there might be none to delete
	conn.DelTable(t)
	conn.AddTable(t)
	leaving := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource})
	for _, prefix := range own {
		if !prefix.Addr().Is4() {
			continue
		}
		match := nftrule.Address(nftrule.Source, expr.CmpOpEq, prefix)
		for _, all := range cluster {
			if all.Addr().Is4() {
				match = append(match, nftrule.Address(nftrule.Destination, expr.CmpOpNeq, all)...)
			}
		}
		conn.AddRule(&nftables.Rule{Table: t, Chain: leaving, Exprs: append(match, nftrule.Masquerade()...)})
	}
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

// hasFirewall says whether the table is there.
func hasFirewall(table string) bool {
	conn, err := nftables.New()
	if err != nil {
		return false
	}
	_, err = conn.ListTableOfFamily(table, nftables.TableFamilyIPv4)
	return err == nil
}
