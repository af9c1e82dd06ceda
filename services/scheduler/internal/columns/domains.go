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
	// ByNode makes each node that has the key a domain of its own, whatever the value.
	ByNode bool
}

// Identity is what counts of the same have alike, and others do not.
type Identity struct {
	term             *Term
	carriers, byNode bool
	scope            string
}

// Identity says what is counted.
func (c Count) Identity() Identity { return Identity{c.Term, c.Carriers, c.ByNode, c.scope()} }

// Same reports whether both count the same.
func (c Count) Same(other Count) bool { return c.Identity() == other.Identity() }

func (c Count) scope() string {
	if c.Scope == nil {
		return ""
	}
	return "/" + c.Scope.Key
}

func (c Count) key() string {
	return strconv.FormatUint(uint64(c.Term.ID), 10) + strconv.FormatBool(c.Carriers) + strconv.FormatBool(c.ByNode) +
		c.scope()
}

// layout is equal for counts over the same domains.
func (c Count) layout() string {
	return strconv.Quote(c.Term.TopologyKey) + strconv.FormatBool(c.ByNode) + c.scope()
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
	// Among is how many domains the nodes that can take the Pod are in; set only for scores that request it.
	Among int
}

// Cell stands for all that a node's domain is judged by, but for what concerns all domains: nodes of one Cell are
// judged alike. It is 0 for a node without the label.
type Cell int32

// Domains counts Pods by domain, up to date with every change of the State. Many nodes share a domain, whose count may
// change as often as it likes: each stays in its Cell. A hostname is a node's own; there the Cell is the count, so that
// there are few, and it changes with the node.
type Domains struct {
	Count
	*layout
	key     string
	readers int

	pods    []int32 // by number of the domain
	atCount []int32 // by count, how many domains with a node in scope have it
	least   int
	total   int
	version uint64
}

// Domains returns the counts, which are kept until as many calls of Release.
func (s *State) Domains(c Count) *Domains {
	key := c.key()
	d := s.domains[key]
	if d == nil {
		d = &Domains{Count: c, key: key, version: 1}
		d.layout = s.layout(c, d)
		d.count()
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
	d.drop(d)
	d.Term.domains = slices.DeleteFunc(d.Term.domains, func(other *Domains) bool { return other == d })
}

// count counts what is there.
func (d *Domains) count() {
	d.pods = make([]int32, len(d.list))
	onNodes := d.Term.carried
	if !d.Carriers {
		onNodes = d.state.selectedByNode(d.Term)
	}
	for slot, n := range onNodes {
		if d.inScope(slot) {
			d.pods[d.where[slot]] += n
			d.total += int(n)
		}
	}
	for number := range d.list {
		if d.list[number].own > 0 {
			d.level(d.pods[number], 1)
		}
	}
	d.findLeast(0)
}

// Version grows with every change of a count or of the domains.
func (d *Domains) Version() uint64 { return d.version }

// ByHost reports whether the Cell of a node is its count.
func (d *Domains) ByHost() bool { return d.byHost() }

// Cell returns the cell of the node.
func (d *Domains) Cell(slot Slot) Cell {
	number := d.number(slot)
	if number == 0 || !d.byHost() {
		return Cell(number)
	}
	return Cell(1 + d.pods[number])
}

// At returns the domain of the nodes of a cell.
func (d *Domains) At(c Cell) Domain {
	out := Domain{Exists: c != 0, Least: d.least, Domains: d.known, Total: d.total}
	switch {
	case c == 0:
	case d.byHost():
		out.Pods = int(c - 1)
	default:
		out.Pods = int(d.pods[c])
	}
	return out
}

// Domain returns the domain of the node, as it is or as it would be.
func (n Node) Domain(d *Domains) Domain {
	out := d.At(d.Cell(n.slot))
	if n.gone == nil {
		return out
	}
	gone := 0
	if d.inScope(n.slot) {
		for _, uid := range n.gone.pods {
			gone += d.countsOf(uid, d.state.pods[uid].pod)
		}
	}
	own := d.number(n.slot)
	var others map[int32]int // what is gone of other domains, by number
	for _, b := range n.beside() {
		count := 0
		if d.inScope(b.slot) {
			count = d.countsOf(b.pod, d.state.pods[b.pod].pod)
		}
		switch number := d.number(b.slot); {
		case count == 0:
		case number == own:
			gone += count
		default:
			if others == nil {
				others = map[int32]int{}
			}
			others[number] += count
			out.Total -= count
		}
	}
	out.Pods, out.Total = out.Pods-gone, out.Total-gone
	if gone > 0 {
		out.Least = min(out.Least, out.Pods)
	}
	for number, count := range others {
		out.Least = min(out.Least, int(d.pods[number])-count)
	}
	return out
}

// Number names the domain that the node is in; 0 where it is in none.
func (d *Domains) Number(slot Slot) int32 { return d.number(slot) }

// Shares reports whether the Pods of another node count in the domain of the node.
func (d *Domains) Shares(slot, other Slot) bool {
	number := d.number(slot)
	return number != 0 && number == d.number(other) && d.inScope(other)
}

// Counted returns the nodes with Pods that count, in the order of their slots.
func (d *Domains) Counted() []Slot {
	on := d.Term.selected
	if d.Carriers {
		on = d.Term.carried
	}
	var slots []Slot
	for slot := range on {
		if d.inScope(slot) {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	return slots
}

// Counts reports whether the Pod, which takes room on a node, counts.
func (d *Domains) Counts(uid types.UID) bool { return d.countsOf(uid, d.state.pods[uid].pod) > 0 }

// countsOf returns for how many the Pod counts, or would count on a node.
func (d *Domains) countsOf(uid types.UID, p *corev1.Pod) int {
	n := 0
	if d.Carriers {
		for _, t := range d.state.terms.ofPod[uid] {
			if t == d.Term {
				n++
			}
		}
	} else if d.Term.Selects(p) {
		n++
	}
	return n
}

// add counts Pods on a node.
func (d *Domains) add(slot Slot, by int32) {
	if !d.inScope(slot) {
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

// shift changes the count of a domain that has a node in scope. Other nodes of a hostname change their cell with it.
func (d *Domains) shift(number, by int32) {
	if by == 0 {
		return
	}
	d.total += int(by)
	before := d.pods[number]
	d.pods[number] += by
	d.level(d.pods[number], 1)
	d.level(before, -1)
	at := &d.list[number]
	if d.topologyKey == corev1.LabelHostname && at.nodes > 1 {
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
	from := d.least
	if by > 0 && (int(count) < d.least || d.known == 1) {
		from = int(count)
	}
	d.findLeast(from)
}

// findLeast looks for the least count from here on.
func (d *Domains) findLeast(from int) {
	for from < len(d.atCount) && d.atCount[from] == 0 {
		from++
	}
	if from == len(d.atCount) {
		from = 0
	}
	d.least = from
}
