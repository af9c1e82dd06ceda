package linkguard

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/google/nftables"

	"keelson.dev/kit/nftrule"
)

// Set guards a Pod's link, in the table that has the guards of all Pods of the node. Owner is a unique name of the
// Pod, by which Remove finds the guard; a guard replaces the owner's earlier one.
func Set(table, owner string, link Link) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	guards := conn.AddTable(tableOf(table))
	before := &nftables.Chain{Name: chainOf(owner), Table: guards}
	conn.AddChain(before) // or there might be none to delete
	conn.DelChain(before)
	chain := conn.AddChain(&nftables.Chain{
		Name: chainOf(owner), Table: guards, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookIngress,
		Priority: nftables.ChainPriorityFilter, Device: link.Name})
	for _, match := range link.dropped() {
		conn.AddRule(&nftables.Rule{Table: guards, Chain: chain, Exprs: append(match, nftrule.Drop()...)})
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("guarding the link %s: %w", link.Name, err)
	}
	return nil
}

// Remove removes a guard; a missing guard is no error.
func Remove(table, owner string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	conn.DelChain(&nftables.Chain{Name: chainOf(owner), Table: tableOf(table)})
	if err := conn.Flush(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the guard of a link: %w", err)
	}
	return nil
}

func tableOf(name string) *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyNetdev, Name: name}
}

// chainOf returns the name of a Pod's chain: as much of the owner's name as the kernel allows.
func chainOf(owner string) string {
	const most = 127
	return owner[:min(len(owner), most)]
}
