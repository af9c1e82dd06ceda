package preempt

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
)

// maxAcross bounds the nodes times the Pods that one call of FindAcross looks at; nodes beyond it are left out.
const maxAcross = 200_000

// neighbour is a Pod of lower priority that counts in domains that the preemptor looks at.
type neighbour struct {
	columns.Occupant
	slot columns.Slot
	in   []*columns.Domains
}

// FindAcross returns the best plan where Pods on other nodes may be victims too: those that count in a domain of the
// node that the Pod looks at. It is for a Pod for which Find has no plan; nil when there is none here either.
func (s *Search) FindAcross(p Preemptor) *Plan {
	near := s.neighbours(p)
	if len(near) == 0 {
		return nil
	}
	slots, confined := p.Class.Confined(s.state)
	if !confined {
		for slot := range columns.Slot(s.state.Slots()) {
			slots = append(slots, slot)
		}
	}
	var best *Plan
	for _, slot := range slots[:min(len(slots), max(1, maxAcross/len(near)))] {
		cost, ok := s.tryAcross(p, slot, near)
		if !ok {
			continue
		}
		if plan := s.planOf(p, slot, cost); best == nil || plan.Better(best, s.state) {
			best = plan
		}
	}
	return best
}

// AwaitsAcross reports whether a Pod on another node leaves that counts in a domain of the node.
func (s *Search) AwaitsAcross(p Preemptor, slot columns.Slot) bool {
	return slices.ContainsFunc(beside(slot, s.neighbours(p)), func(o columns.Occupant) bool {
		return s.leaving(o.Pod)
	})
}

// neighbours returns the Pods of lower priority that count in any domain.
func (s *Search) neighbours(p Preemptor) (near []neighbour) {
	at := map[types.UID]int{}
	for _, table := range p.Class.FilterDomains(s.state) {
		for _, slot := range table.Counted() {
			for _, o := range lowerThan(s.state.Occupants(slot), p.Priority) {
				if !table.Counts(o.Pod.UID) {
					continue
				}
				i, ok := at[o.Pod.UID]
				if !ok {
					i = len(near)
					at[o.Pod.UID] = i
					near = append(near, neighbour{Occupant: o, slot: slot})
				}
				near[i].in = append(near[i].in, table)
			}
		}
	}
	return near
}

// beside returns the neighbours on other nodes that count in a domain of the node.
func beside(slot columns.Slot, near []neighbour) (out []columns.Occupant) {
	for i := range near {
		n := &near[i]
		if n.slot != slot && slices.ContainsFunc(n.in,
			func(d *columns.Domains) bool { return d.Shares(slot, n.slot) }) {
			out = append(out, n.Occupant)
		}
	}
	return out
}

// tryAcross is try with the neighbours of a node among those that may go.
func (s *Search) tryAcross(p Preemptor, slot columns.Slot, near []neighbour) (Cost, bool) {
	s.victims = s.victims[:0]
	if !s.state.Known(slot) {
		return Cost{}, false
	}
	t := s.start(p, slot)
	if refusal := p.Class.Refuse(s.state, t.Node()); refusal == 0 || !p.Class.Curable(refusal) {
		return Cost{}, false
	}
	others := beside(slot, near)
	if len(others) == 0 {
		return Cost{}, false
	}
	t.Across()
	lower := append(others, lowerThan(s.state.Occupants(slot), p.Priority)...)
	slices.SortFunc(lower, columns.Importance)
	for i := range lower {
		t.Remove(&lower[i])
	}
	if p.Class.Refuse(s.state, t.Node()) != 0 {
		return Cost{}, false
	}
	s.split(lower)
	cost := Cost{Violations: s.reprieve(p, s.violating)}
	s.reprieve(p, s.harmless)
	s.add(&cost)
	return cost, true
}

// Disturbs reports whether a Pod on the node would count in a domain of the other node that Pods of the class look at.
func Disturbs(s *columns.State, pod *corev1.Pod, carries []*columns.Term, at columns.Slot, c *class.Class,
	of columns.Slot) bool {
	return slices.ContainsFunc(c.FilterDomains(s), func(d *columns.Domains) bool {
		counts := d.Term.Selects(pod)
		if d.Carriers {
			counts = slices.Contains(carries, d.Term)
		}
		return counts && d.Shares(of, at)
	})
}
