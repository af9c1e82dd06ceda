package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/nftrule"
)

// SetNetworkRules rewrites the mesh's firewall table: traffic from the network between the nodes to addresses
// outside the mesh leaves with the machine's address. It uses netlink; neither iptables nor nft is needed.
func SetNetworkRules(table string, between, pods plan.Range) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	masquerade(conn, &nftables.Table{Family: nftables.TableFamilyIPv4, Name: table}, between.IPv4, pods.IPv4)
	if between.Dual() {
		masquerade(conn, &nftables.Table{Family: nftables.TableFamilyIPv6, Name: table}, between.IPv6, pods.IPv6)
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", table, err)
	}
	return nil
}

// masquerade rewrites the table of one family.
func masquerade(conn *nftables.Conn, own *nftables.Table, between, pods netip.Prefix) {
	conn.AddTable(own) // DelTable fails without a table
	conn.DelTable(own)
	conn.AddTable(own)
	leaving := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: own, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource,
	})
	conn.AddRule(&nftables.Rule{Table: own, Chain: leaving, Exprs: slices.Concat(
		nftrule.Address(nftrule.Source, expr.CmpOpEq, between),
		nftrule.Address(nftrule.Destination, expr.CmpOpNeq, between),
		nftrule.Address(nftrule.Destination, expr.CmpOpNeq, pods), nftrule.Masquerade())})
}

// RemoveTables removes the firewall tables of the machine with these name prefixes.
func RemoveTables(prefixes ...string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	tables, err := conn.ListTables()
	if err != nil {
		return fmt.Errorf("listing the firewall tables: %w", err)
	}
	for _, table := range tables {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(table.Name, p) }) {
			conn.DelTable(table)
		}
	}
	if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing firewall tables: %w", err)
	}
	return nil
}
