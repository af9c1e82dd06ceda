// Package table describes the nf_tables table of a node's Services as data: which elements, rules and chains
// implement the plans of all Services, and which messages turn the kernel's contents into them. It does not talk to
// the kernel.
//
// Services change only elements of a few sets and maps, never rules: the cost of a change depends on its size, and
// neither a connection nor a change takes longer with more Services.
//
//keelson:decision
package table

import (
	"github.com/google/nftables"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// Table is a table of the family inet.
type Table struct{ Name string }

// StandIn returns the table that replaces this one while it is recreated.
func (t Table) StandIn() Table { return Table{t.Name + "-meanwhile"} }

func (t Table) ref() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: t.Name}
}

// Elements are values by set and key.
type Elements map[string]map[string]string

// Ruleset is all that the table has to hold.
type Ruleset struct {
	Elements      Elements
	Picks         []Pick
	PrefixLengths []PrefixLength
	Node          plan.Node
}

// Found is what the kernel has of a table that this version understands.
type Found struct {
	Elements Elements
	Chains   []string
}

// Changes turn one Ruleset of a node into the next: first Gone is removed, then New added.
type Changes struct {
	Gone, New            []Element
	GonePicks, NewPicks  []Pick
	PrefixLengths        []PrefixLength
	PrefixLengthsChanged bool
}

// Empty reports whether nothing changes.
func (c Changes) Empty() bool { return len(c.Gone)+len(c.New) == 0 && !c.PrefixLengthsChanged }

// difference returns the changes from the found elements to the wanted ones.
func difference(found, want Elements) Changes {
	var c Changes
	for _, name := range followed {
		for _, r := range families {
			set := r.name(name)
			for key, value := range found[set] {
				if now, stays := want[set][key]; !stays || now != value {
					c.Gone = append(c.Gone, Element{set, key, value})
				}
			}
			for key, value := range want[set] {
				if before, there := found[set][key]; !there || before != value {
					c.New = append(c.New, Element{set, key, value})
				}
			}
		}
	}
	return c
}
