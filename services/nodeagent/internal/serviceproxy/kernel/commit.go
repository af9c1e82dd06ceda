package kernel

import (
	"fmt"

	"github.com/google/nftables"

	"keelson.dev/services/nodeagent/internal/serviceproxy/table"
)

// commit has the kernel apply all of a transaction, or nothing. It returns how many elements were added and
// removed.
func (t *Table) commit(all table.Transaction) (int, error) {
	conn, err := dial(all.Elements)
	if err != nil {
		return 0, err
	}
	for _, step := range all.Steps {
		if err := send(conn, step); err != nil {
			return 0, err
		}
	}
	if err := conn.Flush(); err != nil {
		return 0, fmt.Errorf("writing the firewall table %s: %w", t.table.Name, err)
	}
	t.use, _ = t.usage()
	return all.Elements, nil
}

// send adds a step to the transaction that the connection gathers.
func send(conn *nftables.Conn, step table.Step) error {
	switch s := step.(type) {
	case table.AddTable:
		conn.AddTable(s.Table)
	case table.DeleteTable:
		conn.DelTable(s.Table)
	case table.AddSet:
		if err := conn.AddSet(s.Set, nil); err != nil {
			return fmt.Errorf("describing the set %s: %w", s.Name, err)
		}
	case table.FlushSet:
		conn.FlushSet(s.Set)
	case table.AddChain:
		conn.AddChain(s.Chain)
	case table.FlushChain:
		conn.FlushChain(s.Chain)
	case table.DeleteChain:
		conn.DelChain(s.Chain)
	case table.AddRule:
		conn.AddRule(s.Rule)
	case table.AddElements:
		if err := conn.SetAddElements(s.Set, s.Elements); err != nil {
			return fmt.Errorf("describing elements of %s: %w", s.Set.Name, err)
		}
	case table.DeleteElements:
		if err := conn.SetDeleteElements(s.Set, s.Elements); err != nil {
			return fmt.Errorf("describing elements of %s: %w", s.Set.Name, err)
		}
	}
	return nil
}
