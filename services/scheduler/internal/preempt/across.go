package preempt

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
)

// maxAcross is what Search.MaxAcross is at first: half a second or so, however many Pods there are, says
// BenchmarkPreemptAcross.
const maxAcross = 2_000_000

// neighbour is a Pod of lower priority that counts in domains that the preemptor looks at.
type neighbour struct {
	columns.Occupant
	slot columns.Slot
}

// neighbours are these Pods by the domains that they count in.
type neighbours struct {
	tables []*columns.Domains
	pods   []neighbour
	in     map[domain][]int // positions in pods
}

type domain struct {
	of     *columns.Domains
	number int32
}

// FindAcross returns the best plan where Pods on other nodes may be victims too: those that count in a domain of the
// node that the Pod looks at. It is for a Pod for which Find has no plan; nil when there is none here either. It tries
// the nodes that such Pods may keep from it, first those in whose domains the fewest Pods count, then the first by
// name; left is how many came too late and were not tried.
func (s *Search) FindAcross(p Preemptor) (best *Plan, left int) {
	near := s.neighbours(p)
	if len(near.pods) == 0 {
		return nil, 0
	}
	work := 0
	slots := s.refusing(p, near.tables)
	for i, slot := range slots {
		others := near.beside(slot)
		if work += (1 + len(others)) * (len(others) + len(s.state.Occupants(slot))); i > 0 && work > s.MaxAcross {
			return best, len(slots) - i
		}
		cost, ok := s.tryAcross(p, slot, others)
		if !ok {
			continue
		}
		if plan := s.planOf(p, slot, cost); best == nil || plan.Better(best, s.state) {
			best = plan
		}
	}
	return best, 0
}

// refusing returns the nodes that refuse the Pod for what the removal of others may cure, in the order of FindAcross.
func (s *Search) refusing(p Preemptor, tables []*columns.Domains) []columns.Slot {
	slots, confined := p.Class.Confined(s.state)
	if !confined {
		for slot := range columns.Slot(s.state.Slots()) {
			slots = append(slots, slot)
		}
	}
	slots = slices.DeleteFunc(slots, func(slot columns.Slot) bool {
		if !s.state.Known(slot) {
			return true
		}
		refusal := p.Class.Refuse(s.state, s.start(p, slot).Node())
		return refusal == 0 || !p.Class.Curable(refusal)
	})
	count := func(slot columns.Slot) (pods int) {
		for _, table := range tables {
			pods += table.At(table.Cell(slot)).Pods
		}
		return pods
	}
	slices.SortFunc(slots, func(a, b columns.Slot) int {
		return cmp.Or(cmp.Compare(count(a), count(b)), strings.Compare(s.state.Name(a), s.state.Name(b)))
	})
	return slots
}

// AwaitsAcross reports whether a Pod on another node leaves that counts in a domain of the node.
func (s *Search) AwaitsAcross(p Preemptor, slot columns.Slot) bool {
	near := s.neighbours(p)
	return slices.ContainsFunc(near.beside(slot), func(o columns.Occupant) bool { return s.leaving(o.Pod) })
}

// neighbours returns the Pods of lower priority that count in any domain.
func (s *Search) neighbours(p Preemptor) neighbours {
	near := neighbours{tables: p.Class.FilterDomains(s.state), in: map[domain][]int{}}
	at := map[types.UID]int{}
	for _, table := range near.tables {
		for _, slot := range table.Counted() {
			in := domain{of: table, number: table.Number(slot)}
			for _, o := range lowerThan(s.state.Occupants(slot), p.Priority) {
				if !table.Counts(o.Pod.UID) {
					continue
				}
				i, ok := at[o.Pod.UID]
				if !ok {
					i = len(near.pods)
					at[o.Pod.UID] = i
					near.pods = append(near.pods, neighbour{Occupant: o, slot: slot})
				}
				near.in[in] = append(near.in[in], i)
			}
		}
	}
	return near
}

// beside returns those on other nodes that count in a domain of the node.
func (n *neighbours) beside(slot columns.Slot) (out []columns.Occupant) {
	var at []int
	for _, table := range n.tables {
		if number := table.Number(slot); number != 0 {
			at = append(at, n.in[domain{of: table, number: number}]...)
		}
	}
	slices.Sort(at)
	for _, i := range slices.Compact(at) {
		if n.pods[i].slot != slot {
			out = append(out, n.pods[i].Occupant)
		}
	}
	return out
}

// tryAcross is try with the neighbours of a node among those that may go. Until they are gone the Pod waits, as no
// other Pod does.
func (s *Search) tryAcross(p Preemptor, slot columns.Slot, others []columns.Occupant) (Cost, bool) {
	s.victims = s.victims[:0]
	if len(others) == 0 {
		return Cost{}, false
	}
	lower := append(others, lowerThan(s.state.Occupants(slot), p.Priority)...)
	slices.SortFunc(lower, columns.Importance)
	parties := s.gather(lower, p.Priority, slot)
	s.start(p, slot).Across()
	s.apart = false
	s.clear(parties)
	if s.refuse(p) != 0 {
		return Cost{}, false
	}
	s.split(parties)
	s.spare(p)
	return s.sum(), true
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
