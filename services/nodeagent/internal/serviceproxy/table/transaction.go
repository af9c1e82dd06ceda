package table

import (
	"maps"
	"slices"

	"github.com/google/nftables"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// Transaction is a list of steps that the kernel applies at once and in this order, or not at all.
type Transaction struct {
	Table Table
	Steps []Step
	// Elements is how many elements of sets that follow Services are added and removed.
	Elements int
}

// Step is one message of a transaction, one of the types below.
type Step interface{ step() }

// A transaction may add what exists already, except elements; what it removes must exist.
type (
	// AddTable adds a table.
	AddTable struct{ *nftables.Table }
	// DeleteTable deletes a table with all its contents.
	DeleteTable struct{ *nftables.Table }
	// AddSet adds a set or map.
	AddSet struct{ *nftables.Set }
	// FlushSet empties a set or map.
	FlushSet struct{ *nftables.Set }
	// AddChain adds a chain.
	AddChain struct{ *nftables.Chain }
	// FlushChain removes the rules of a chain.
	FlushChain struct{ *nftables.Chain }
	// DeleteChain deletes a chain to which nothing leads.
	DeleteChain struct{ *nftables.Chain }
	// AddRule appends a rule to its chain.
	AddRule struct{ *nftables.Rule }
	// AddElements adds elements to a set or map.
	AddElements struct {
		Set      *nftables.Set
		Elements []nftables.SetElement
	}
	// DeleteElements removes elements from a set or map.
	DeleteElements struct {
		Set      *nftables.Set
		Elements []nftables.SetElement
	}
)

func (AddTable) step()       {}
func (DeleteTable) step()    {}
func (AddSet) step()         {}
func (FlushSet) step()       {}
func (AddChain) step()       {}
func (FlushChain) step()     {}
func (DeleteChain) step()    {}
func (AddRule) step()        {}
func (AddElements) step()    {}
func (DeleteElements) step() {}

// Create deletes the table, if it exists, and creates it with the wanted contents.
func (t Table) Create(want Ruleset) Transaction {
	out := Transaction{Table: t}
	out.add(AddTable{t.ref()}, DeleteTable{t.ref()}, AddTable{t.ref()}) // only an existing table can be deleted
	for _, s := range t.Sets() {
		out.add(AddSet{s})
	}
	out.program(want, Found{}, false)
	return out
}

// Update makes the found table what is wanted; it touches only the elements that change.
func (t Table) Update(found Found, want Ruleset) Transaction {
	out := Transaction{Table: t}
	out.add(AddTable{t.ref()})
	out.program(want, found, true)
	return out
}

// Delete deletes the table, which must exist.
func (t Table) Delete() Transaction {
	return Transaction{Table: t, Steps: []Step{DeleteTable{t.ref()}}}
}

// Change applies changes of Services on a node.
func (t Table) Change(c Changes, node plan.Node) Transaction {
	out := Transaction{Table: t}
	if c.PrefixLengthsChanged {
		chains := fixedChains(node, c.PrefixLengths)
		for _, r := range families {
			name := r.name(chainFirewall)
			out.add(FlushChain{t.chain(name)})
			out.addRules(name, chains[name])
		}
	}
	for _, p := range c.NewPicks {
		out.add(AddChain{t.chain(p.chain())})
		out.addRules(p.chain(), registersOf(p.IPv6).pickRules(p))
		out.add(AddElements{t.setOf(setPicks, p.IPv6), []nftables.SetElement{p.element()}})
	}
	out.editElements(c)
	for _, p := range c.GonePicks {
		out.add(DeleteElements{t.setOf(setPicks, p.IPv6), []nftables.SetElement{{Key: p.key()}}},
			DeleteChain{t.chain(p.chain())})
	}
	return out
}

func (x *Transaction) add(steps ...Step) { x.Steps = append(x.Steps, steps...) }

func (x *Transaction) program(want Ruleset, found Found, flush bool) {
	chains := fixedChains(want.Node, want.PrefixLengths)
	for _, p := range want.Picks {
		chains[p.chain()] = registersOf(p.IPv6).pickRules(p)
	}
	names := slices.Sorted(maps.Keys(chains))
	for _, name := range names {
		x.add(AddChain{x.Table.chain(name)})
	}
	for _, name := range found.Chains {
		x.add(FlushChain{x.Table.named(name)})
	}
	x.leadToChains(want.Picks, flush)
	for _, name := range names {
		x.addRules(name, chains[name])
	}
	for _, name := range found.Chains {
		if _, stays := chains[name]; !stays {
			x.add(DeleteChain{x.Table.named(name)})
		}
	}
	x.editElements(difference(found.Elements, want.Elements))
}

// leadToChains fills the maps that lead to chains.
func (x *Transaction) leadToChains(picks []Pick, flush bool) {
	for _, r := range families {
		classes, choices := x.Table.setOf(setClasses, r.ipv6), x.Table.setOf(setPicks, r.ipv6)
		if flush {
			x.add(FlushSet{classes}, FlushSet{choices})
		}
		var elements []nftables.SetElement
		for class, chain := range classChains {
			elements = append(elements, nftables.SetElement{Key: []byte(word(uint32(class))),
				VerdictData: verdict(r.name(chain))})
		}
		x.add(AddElements{classes, elements})
		for _, p := range picks {
			if p.IPv6 == r.ipv6 {
				x.add(AddElements{choices, []nftables.SetElement{p.element()}})
			}
		}
	}
}

func (x *Transaction) addRules(chain string, all rules) {
	for _, exprs := range all {
		x.add(AddRule{&nftables.Rule{Table: x.Table.ref(), Chain: x.Table.named(chain), Exprs: exprs}})
	}
}

// perMessage is how many elements one message carries: its list may have 64 KiB.
const perMessage = 400

// editElements removes elements, then adds others.
func (x *Transaction) editElements(c Changes) {
	x.Elements = len(c.Gone) + len(c.New)
	for name, gone := range bySet(c.Gone, false) {
		for chunk := range slices.Chunk(gone, perMessage) {
			x.add(DeleteElements{&nftables.Set{Table: x.Table.ref(), Name: name}, chunk})
		}
	}
	for name, more := range bySet(c.New, true) {
		for chunk := range slices.Chunk(more, perMessage) {
			x.add(AddElements{&nftables.Set{Table: x.Table.ref(), Name: name}, chunk})
		}
	}
}

func bySet(elements []Element, values bool) map[string][]nftables.SetElement {
	out := map[string][]nftables.SetElement{}
	for _, e := range elements {
		element := nftables.SetElement{Key: []byte(e.Key)}
		if values {
			element.Val = []byte(e.Value)
		}
		out[e.Set] = append(out[e.Set], element)
	}
	return out
}

func (p Pick) element() nftables.SetElement {
	return nftables.SetElement{Key: p.key(), VerdictData: verdict(p.chain())}
}
