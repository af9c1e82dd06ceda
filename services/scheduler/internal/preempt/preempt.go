// Package preempt decides which Pods are evicted for a Pod of higher priority that fits nowhere.
//
// A node helps when the Pod fits there without all Pods of lower priority. Then as many of these stay as can, those
// first whose disruption a budget forbids, the most important first; the rest are the victims. The order of Cost
// selects one of the nodes that help.
//
// The Pods of a Unit are evicted together or not at all: those on other nodes count in the cost, and if one of them may
// not be evicted, none is. The Pod must fit whether those on other nodes are gone yet or not, as it does not wait for
// them.
//
// The cost of a node is kept for the Pods of one class and priority, and computed again when the node has changed: the
// next Pod of the kind costs what changed since, however many nodes there are.
//
// The package is pure; it is not safe for concurrent use.
//
//keelson:decision
package preempt

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
)

// Why a node does not help, in the field's words.
const (
	NotHelpful = "Preemption is not helpful for scheduling"
	NoVictims  = "No preemption victims found for incoming pod"
	Refused    = "node(s) were refused by an extender for preemption"
)

// maxTables bounds the kinds of Pods for which costs are kept.
const maxTables = 16

// Preemptor is a Pod that fits on no node.
type Preemptor struct {
	UID      types.UID
	Class    *class.Class
	Priority int32
}

// Plan is how a Pod comes to its room.
type Plan struct {
	Slot columns.Slot
	// Victims are the Pods to be evicted, the most important first. There are none where those that are leaving
	// already suffice.
	Victims []*corev1.Pod
	// Violations is how many of them a budget forbids to evict.
	Violations int
	// Displaced are the Pods of lower priority that are nominated for the node.
	Displaced []types.UID

	cost Cost
}

// Search finds plans. Make one with New.
type Search struct {
	// MaxAcross bounds the work of one call of FindAcross: on each node that it tries, the Pods on other nodes that may
	// go, times these and the Pods on the node.
	MaxAcross int

	state   *columns.State
	budgets *Budgets
	units   *Units
	leaving func(*corev1.Pod) bool
	tables  []*table // the one that was asked last comes last

	// What the last call of try left behind, to be used again.
	trial               columns.Trial
	parties             []party // those that may go
	seen                []*Unit // among these, and those of which none may go
	violating, harmless []party
	violated            []types.UID // the Pods that no budget lets go
	victims, before     []party
	listed              []*columns.Occupant // the Pods of the victims
	apart               bool                // whether Pods of other nodes go with some of this one
	bound               bool                // whether Pods stay that do not go without others
}

// New returns a Search. Pods of which leaving is true go already, to make room: they count as gone and cost nothing.
// Where that changes for a Pod, its node must be noted in the State's journal.
func New(state *columns.State, budgets *Budgets, units *Units, leaving func(*corev1.Pod) bool) *Search {
	return &Search{MaxAcross: maxAcross, state: state, budgets: budgets, units: units, leaving: leaving}
}

// Find returns the best plan for a Pod that fits nowhere, or why there is none, by number of nodes.
func (s *Search) Find(p Preemptor) (*Plan, []class.Reason) {
	if lowest, ok := s.state.LowestPriority(); !ok || lowest >= p.Priority {
		curable, incurable := p.Class.Curables(s.state)
		return nil, reasons(nil, incurable, curable)
	}
	t := s.costs(p)
	slot, ok := t.best()
	if !ok {
		return nil, t.reasons(p.Class)
	}
	return s.plan(p, slot), nil
}

// FindAmong is Find on a few nodes, at each of which it looks.
func (s *Search) FindAmong(p Preemptor, slots []columns.Slot) *Plan {
	slot, ok := s.among(p, slots).best()
	if !ok {
		return nil
	}
	return s.plan(p, slot)
}

// Cost returns what these Pods cost together, and which of them no budget lets go. None of them is leaving.
func (s *Search) Cost(pods []columns.Occupant) (Cost, []types.UID) {
	s.split(s.together(pods))
	s.victims = append(append(s.victims[:0], s.violating...), s.harmless...)
	return s.sum(), slices.Clone(s.violated)
}

// Order returns Pods that are not leaving in the order in which they are spared, those together that are evicted
// together: those first whose disruption a budget forbids, the most important first.
func (s *Search) Order(pods []columns.Occupant) (parties [][]columns.Occupant) {
	s.split(s.together(pods))
	for _, p := range slices.Concat(s.violating, s.harmless) {
		parties = append(parties, append([]columns.Occupant{*p.lead}, p.others...))
	}
	return parties
}

// costs returns what each node would cost the Pod.
func (s *Search) costs(p Preemptor) *table {
	s.units.Note(s.state)
	if slots, confined := p.Class.Confined(s.state); confined {
		return s.among(p, slots)
	}
	t := s.table(p)
	t.catchUp(s, p, s.state.ReservedFor(p.UID))
	return t
}

// Helps reports whether the node would help the Pod.
func (s *Search) Helps(p Preemptor, slot columns.Slot) bool {
	return s.try(p, slot).outcome == helps
}

// among looks at a few nodes one by one; all others are useless.
func (s *Search) among(p Preemptor, slots []columns.Slot) *table {
	t := newTable(p, s.state)
	for _, slot := range slots {
		t.set(slot, s.try(p, slot))
	}
	t.outcomes[useless] += s.state.Nodes() - len(slots)
	return t
}

// plan returns what the node costs in detail.
func (s *Search) plan(p Preemptor, slot columns.Slot) *Plan {
	return s.planOf(p, slot, s.try(p, slot).cost)
}

// planOf makes a plan of the victims that were found last.
func (s *Search) planOf(p Preemptor, slot columns.Slot, cost Cost) *Plan {
	plan := &Plan{Slot: slot, Violations: int(cost.Violations), cost: cost}
	s.listed = s.listed[:0]
	for i := range s.victims {
		s.victims[i].pods(func(o *columns.Occupant) { s.listed = append(s.listed, o) })
	}
	slices.SortFunc(s.listed, func(a, b *columns.Occupant) int { return columns.Importance(*a, *b) })
	for _, v := range s.listed {
		plan.Victims = append(plan.Victims, v.Pod)
	}
	for _, r := range s.state.Reservations(slot) {
		if r.Priority < p.Priority {
			plan.Displaced = append(plan.Displaced, r.UID)
		}
	}
	return plan
}

// table returns the costs that are kept for Pods of a kind.
func (s *Search) table(p Preemptor) *table {
	i := slices.IndexFunc(s.tables, func(t *table) bool { return t.class == p.Class && t.priority == p.Priority })
	var t *table
	if i >= 0 {
		t = s.tables[i]
		s.tables = slices.Delete(s.tables, i, i+1)
	} else {
		t = newTable(p, s.state)
		if len(s.tables) == maxTables {
			s.tables = slices.Delete(s.tables, 0, 1)
		}
	}
	s.tables = append(s.tables, t)
	return t
}
