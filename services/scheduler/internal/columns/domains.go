package columns

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Count says what is counted in the domains of a term's topology key.
type Count struct {
	Term *Term
	// Carriers counts the Pods that carry the term, not those that it selects.
	Carriers bool
	// Scope limits the nodes that make domains and whose Pods count; nil for all nodes that have the key.
	Scope *Scope
}

// Same reports whether both count the same.
func (c Count) Same(other Count) bool {
	return c.Term == other.Term && c.Carriers == other.Carriers && c.scope() == other.scope()
}

func (c Count) scope() string {
	if c.Scope == nil {
		return ""
	}
	return "/" + c.Scope.Key
}

func (c Count) key() string {
	return strconv.FormatUint(uint64(c.Term.ID), 10) + strconv.FormatBool(c.Carriers) + c.scope()
}

// Scope selects nodes by their description. Scopes of equal keys are equal.
type Scope struct {
	Key string
	Has func(View) bool
}

// Domain is the domain of a node as a rule sees it, among the others of its topology key.
type Domain struct {
	// Exists is whether the node is in a domain: whether it has the label.
	Exists bool
	// Pods is the count in the domain; 0 where no node of it is in scope.
	Pods int
	// Least is the least count of a domain with a node in scope, Domains how many of these there are, and Total the
	// sum of all counts.
	Least, Domains, Total int
}

// Cell stands for all that a node's domain is judged by, but for what concerns all domains: nodes of one Cell are
// judged alike. It is 0 for a node without the label.
type Cell int32

// Domains counts Pods by domain, up to date with every change of the State. Many nodes share a domain, whose count may
// change as often as it likes: each stays in its Cell. A hostname is a node's own; there the Cell is the count, so that
// there are few, and it changes with the node.
type Domains struct {
	Count
	state   *State
	key     string
	readers int
	byHost  bool

	numbers map[string]int32 // by value
	list    []domain         // by number, from 1
	free    []int32
	where   []int32 // by slot: the number of the domain, negative where the node is out of scope, 0 for none

	atCount []int32 // by count, how many domains have it
	least   int
	known   int // domains with a node in scope
	total   int
	version uint64
}

type domain struct {
	value string
	nodes int32 // that have the value
	own   int32 // of these, in scope
	pods  int32
}

// Domains returns the counts, which are kept until as many calls of Release.
func (s *State) Domains(c Count) *Domains {
	key := c.key()
	d := s.domains[key]
	if d == nil {
		d = &Domains{Count: c, state: s, key: key, byHost: c.Term.TopologyKey == corev1.LabelHostname,
			numbers: map[string]int32{}, list: make([]domain, 1), version: 1}
		if !c.Carriers {
			s.selectedByNode(c.Term)
		}
		for slot := range Slot(len(s.names)) {
			d.place(slot)
		}
		s.domains[key] = d
		c.Term.domains = append(c.Term.domains, d)
	}
	d.readers++
	return d
}

// Release gives the counts back.
func (d *Domains) Release() {
	if d.readers--; d.readers > 0 {
		return
	}
	delete(d.state.domains, d.key)
	d.Term.domains = slices.DeleteFunc(d.Term.domains, func(other *Domains) bool { return other == d })
}

// Version grows with every change of a count or of the domains.
func (d *Domains) Version() uint64 { return d.version }

// Cell returns the cell of the node.
func (d *Domains) Cell(slot Slot) Cell {
	number := d.number(slot)
	if number == 0 || !d.byHost {
		return Cell(number)
	}
	return Cell(1 + d.list[number].pods)
}

// At returns the domain of the nodes of a cell.
func (d *Domains) At(c Cell) Domain {
	out := Domain{Exists: c != 0, Least: d.least, Domains: d.known, Total: d.total}
	switch {
	case c == 0:
	case d.byHost:
		out.Pods = int(c - 1)
	default:
		out.Pods = int(d.list[c].pods)
	}
	return out
}

// Domain returns the domain of the node, as it is or as it would be.
func (n Node) Domain(d *Domains) Domain {
	out := d.At(d.Cell(n.slot))
	if n.gone == nil || d.number(n.slot) == 0 || d.where[n.slot] < 0 {
		return out
	}
	gone := 0
	for _, uid := range n.gone.pods {
		gone += d.countsOf(uid)
	}
	out.Pods, out.Total = out.Pods-gone, out.Total-gone
	out.Least = min(out.Least, out.Pods)
	return out
}

// countsOf returns for how many the Pod counts.
func (d *Domains) countsOf(uid types.UID) int {
	n := 0
	if d.Carriers {
		for _, t := range d.state.terms.ofPod[uid] {
			if t == d.Term {
				n++
			}
		}
	} else if d.Term.Selects(d.state.pods[uid].pod) {
		n++
	}
	return n
}

// number returns the number of the node's domain, in scope or not.
func (d *Domains) number(slot Slot) int32 {
	if int(slot) >= len(d.where) {
		return 0
	}
	return max(d.where[slot], -d.where[slot])
}

// place takes over what changed of a node's description.
func (d *Domains) place(slot Slot) {
	for len(d.where) <= int(slot) {
		d.where = append(d.where, 0)
	}
	value, exists := d.state.labelOf(slot, d.Term.TopologyKey)
	inScope := exists && (d.Scope == nil || d.Scope.Has(d.state.View(slot)))
	before := d.where[slot]
	if exists == (before != 0) && inScope == (before > 0) && (!exists || d.list[d.number(slot)].value == value) {
		return
	}
	d.version++
	d.withdraw(slot)
	if !exists {
		return
	}
	number := d.numbers[value]
	if number == 0 {
		number = d.open(value)
	}
	d.list[number].nodes++
	if d.where[slot] = -number; inScope {
		d.where[slot] = number
		d.join(number, 1)
		d.shift(number, d.onNode(slot))
	}
}

// withdraw takes a node out of its domain.
func (d *Domains) withdraw(slot Slot) {
	number := d.number(slot)
	if number == 0 {
		return
	}
	if d.where[slot] > 0 {
		d.shift(number, -d.onNode(slot))
		d.join(number, -1)
	}
	d.where[slot] = 0
	at := &d.list[number]
	if at.nodes--; at.nodes == 0 {
		delete(d.numbers, at.value)
		at.value = ""
		d.free = append(d.free, number)
	}
}

func (d *Domains) open(value string) int32 {
	var number int32
	if n := len(d.free); n > 0 {
		number, d.free = d.free[n-1], d.free[:n-1]
	} else {
		number = int32(len(d.list))
		d.list = append(d.list, domain{})
	}
	d.list[number].value, d.numbers[value] = value, number
	return number
}

// add counts Pods on a node.
func (d *Domains) add(slot Slot, by int32) {
	if int(slot) >= len(d.where) || d.where[slot] <= 0 {
		return
	}
	d.version++
	d.shift(d.where[slot], by)
}

// onNode returns the count of a single node.
func (d *Domains) onNode(slot Slot) int32 {
	if d.Carriers {
		return d.Term.carried[slot]
	}
	return d.Term.selected[slot]
}

// join adds a node in scope to a domain, or takes one away. Its Pods are not counted then.
func (d *Domains) join(number, by int32) {
	at := &d.list[number]
	before := at.own
	at.own += by
	switch {
	case before == 0:
		d.known++
		d.level(at.pods, 1)
	case at.own == 0:
		d.known--
		d.level(at.pods, -1)
	}
}

// shift changes the count of a domain that has a node in scope. Other nodes of a hostname change their cell with it.
func (d *Domains) shift(number, by int32) {
	if by == 0 {
		return
	}
	at := &d.list[number]
	d.total += int(by)
	before := at.pods
	at.pods += by
	d.level(at.pods, 1)
	d.level(before, -1)
	if d.byHost && at.nodes > 1 {
		for _, other := range d.state.ByHostname(at.value) {
			d.state.journal.note(other, false)
		}
	}
}

// level notes that one more (by 1) or one fewer (by -1) domain has the count, and keeps the least.
func (d *Domains) level(count, by int32) {
	for len(d.atCount) <= int(count) {
		d.atCount = append(d.atCount, 0)
	}
	d.atCount[count] += by
	if by > 0 && (int(count) < d.least || d.known == 1) {
		d.least = int(count)
	}
	for d.least < len(d.atCount) && d.atCount[d.least] == 0 {
		d.least++
	}
	if d.least == len(d.atCount) {
		d.least = 0
	}
}
