package kernel

import (
	"fmt"

	"github.com/google/nftables"

	"keelson.dev/services/nodeagent/internal/serviceproxy/table"
)

// read returns what the kernel has of the table, and whether this version understands it.
func (t *Table) read() (table.Found, bool, error) {
	conn, err := dial(1 << 14)
	if err != nil {
		return table.Found{}, false, err
	}
	ref := &nftables.Table{Family: nftables.TableFamilyINet, Name: t.table.Name}
	sets, err := conn.GetSets(ref)
	if err != nil || len(sets) == 0 {
		return table.Found{}, false, nil // no table, or one without sets
	}
	elements, fits, err := t.elements(conn, sets)
	if err != nil || !fits {
		return table.Found{}, false, err
	}
	chains, err := t.chains(conn)
	return table.Found{Elements: elements, Chains: chains}, err == nil, err
}

// elements returns those of the sets that follow Services; false if the table's sets differ from ours.
func (t *Table) elements(conn *nftables.Conn, found []*nftables.Set) (table.Elements, bool, error) {
	byName := map[string]*nftables.Set{}
	for _, s := range found {
		byName[s.Name] = s
	}
	out := table.Elements{}
	for _, s := range t.table.Sets() {
		known := byName[s.Name]
		if known == nil || known.IsMap != s.IsMap {
			return nil, false, nil
		}
		if s.DataType == nftables.TypeVerdict || s.HasTimeout {
			continue
		}
		if known.KeyType.Bytes != s.KeyType.Bytes || known.DataType.Bytes != s.DataType.Bytes {
			return nil, false, nil
		}
		elements, err := conn.GetSetElements(s)
		if err != nil {
			return nil, false, fmt.Errorf("reading the set %s of the firewall table %s: %w", s.Name, t.table.Name, err)
		}
		held := make(map[string]string, len(elements))
		for _, e := range elements {
			held[string(e.Key)] = string(e.Val)
		}
		out[s.Name] = held
	}
	return out, true, nil
}

// chains returns the names of the table's chains.
func (t *Table) chains(conn *nftables.Conn) ([]string, error) {
	all, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, fmt.Errorf("reading the firewall's chains: %w", err)
	}
	var out []string
	for _, c := range all {
		if c.Table.Name == t.table.Name {
			out = append(out, c.Name)
		}
	}
	return out, nil
}
