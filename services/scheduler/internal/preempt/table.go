package preempt

import (
	"container/heap"
	"slices"
	"strings"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
)

// table is what each node would cost Pods of one class and priority.
type table struct {
	class    *class.Class
	priority int32
	state    *columns.State

	built    bool
	seen     uint64 // the versions of what it is made of
	budgets  uint64
	coverage uint64
	domains  uint64
	rows     []row          // by slot
	order    []columns.Slot // a heap of the nodes that help, the cheapest first
	outcomes [outcomes]int
	refusals []int // nodes that are refused, by refusal

	dirty []columns.Slot
}

// row is a node in a table.
type row struct {
	trialResult
	name  string // of the node, as it was then
	at    int32  // 1 + position in the heap, 0 for none
	stale bool
}

func newTable(p Preemptor, state *columns.State) *table {
	return &table{class: p.Class, priority: p.Priority, state: state}
}

// catchUp tries the nodes that changed since the last call, or all. The node on which room is kept for the Pod itself
// is another one to it than to others of its kind.
func (t *table) catchUp(s *Search, p Preemptor, own columns.Slot) {
	version, domains := t.state.Version(), t.class.DomainsVersion(t.state)
	for len(t.rows) < t.state.Slots() {
		t.rows = append(t.rows, row{})
	}
	if t.budgets != s.budgets.version {
		for slot := range t.rows {
			at := &t.rows[slot]
			if at.budgeted || at.outcome == helps && t.coverage != s.budgets.coverage {
				t.mark(columns.Slot(slot))
			}
		}
	}
	if !t.built || t.domains != domains || version-t.seen > uint64(t.state.Slots()) ||
		!t.state.ChangedSince(t.seen, t.mark) {
		for slot := range t.rows {
			t.mark(columns.Slot(slot))
		}
	}
	t.built, t.seen, t.domains = true, version, domains
	t.budgets, t.coverage = s.budgets.version, s.budgets.coverage
	if own != columns.None {
		t.mark(own)
	}
	for _, slot := range t.dirty {
		t.rows[slot].stale = false
		t.set(slot, s.try(p, slot))
	}
	t.dirty = t.dirty[:0]
	if own != columns.None {
		t.mark(own)
	}
}

func (t *table) mark(slot columns.Slot) {
	if !t.rows[slot].stale {
		t.rows[slot].stale = true
		t.dirty = append(t.dirty, slot)
	}
}

// set takes over what came out of a trial.
func (t *table) set(slot columns.Slot, r trialResult) {
	for len(t.rows) <= int(slot) {
		t.rows = append(t.rows, row{})
	}
	at := &t.rows[slot]
	t.count(at.trialResult, -1)
	t.count(r, 1)
	was := at.outcome == helps
	at.trialResult, at.name = r, t.state.Name(slot)
	switch {
	case was && r.outcome == helps:
		heap.Fix(t, int(at.at)-1)
	case was:
		heap.Remove(t, int(at.at)-1)
	case r.outcome == helps:
		heap.Push(t, slot)
	}
}

func (t *table) count(r trialResult, by int) {
	t.outcomes[r.outcome] += by
	if r.outcome != refused {
		return
	}
	for len(t.refusals) <= int(r.refusal) {
		t.refusals = append(t.refusals, 0)
	}
	t.refusals[r.refusal] += by
}

// best returns the node that costs least, the first by name among equals, so that each scheduler takes the same.
func (t *table) best() (columns.Slot, bool) {
	if len(t.order) == 0 {
		return columns.None, false
	}
	return t.order[0], true
}

// reasons says why no node helps.
func (t *table) reasons(c *class.Class) []class.Reason {
	var out []class.Reason
	for refusal, nodes := range t.refusals {
		if nodes == 0 {
			continue
		}
		for _, text := range c.Texts(class.Refusal(refusal)) {
			out = append(out, class.Reason{Text: text, Nodes: nodes})
		}
	}
	return reasons(out, t.outcomes[useless], t.outcomes[victimless])
}

// reasons adds up reasons of one text.
func reasons(more []class.Reason, incurable, curable int) []class.Reason {
	var out []class.Reason
	add := func(text string, nodes int) {
		if nodes == 0 {
			return
		}
		if i := slices.IndexFunc(out, func(r class.Reason) bool { return r.Text == text }); i >= 0 {
			out[i].Nodes += nodes
			return
		}
		out = append(out, class.Reason{Text: text, Nodes: nodes})
	}
	add(NotHelpful, incurable)
	add(NoVictims, curable)
	for _, r := range more {
		add(r.Text, r.Nodes)
	}
	slices.SortFunc(out, func(a, b class.Reason) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// Len is part of heap.Interface, as are the next four.
func (t *table) Len() int { return len(t.order) }

func (t *table) Less(i, j int) bool {
	return t.compare(t.order[i], t.order[j]) < 0
}

// compare orders nodes that help by what they cost, and by name.
func (t *table) compare(a, b columns.Slot) int {
	less, same := t.rows[a].cost.less(t.rows[b].cost)
	switch {
	case same:
		return strings.Compare(t.rows[a].name, t.rows[b].name)
	case less:
		return -1
	default:
		return 1
	}
}

func (t *table) Swap(i, j int) {
	t.order[i], t.order[j] = t.order[j], t.order[i]
	t.rows[t.order[i]].at, t.rows[t.order[j]].at = int32(i)+1, int32(j)+1
}

func (t *table) Push(x any) {
	slot := x.(columns.Slot)
	t.order = append(t.order, slot)
	t.rows[slot].at = int32(len(t.order))
}

func (t *table) Pop() any {
	last := t.order[len(t.order)-1]
	t.order = t.order[:len(t.order)-1]
	t.rows[last].at = 0
	return last
}
