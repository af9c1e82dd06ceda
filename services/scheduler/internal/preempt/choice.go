package preempt

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
)

// Cheapest returns at most so many plans for a Pod that fits nowhere, in their order.
func (s *Search) Cheapest(p Preemptor, most int) []*Plan {
	if lowest, ok := s.state.LowestPriority(); !ok || lowest >= p.Priority {
		return nil
	}
	t := s.costs(p)
	slots := slices.Clone(t.order)
	slices.SortFunc(slots, t.compare)
	var plans []*Plan
	for _, slot := range slots[:min(most, len(slots))] {
		plans = append(plans, s.plan(p, slot))
	}
	return plans
}

// Check returns the plan to take the room of these Pods on the node, and of those that go with them; nil when it makes
// no room, as the node may have changed since the Pods were chosen. A Pod that is gone does not count. It is an error
// to choose one that is no victim.
func (s *Search) Check(p Preemptor, slot columns.Slot, victims []types.UID) (*Plan, error) {
	s.victims = s.victims[:0]
	if !s.state.Known(slot) {
		return nil, nil
	}
	s.start(p, slot)
	var chosen, leaving []columns.Occupant
	for _, o := range s.state.Occupants(slot) {
		is := slices.Contains(victims, o.Pod.UID)
		switch {
		case is && o.Priority >= p.Priority:
			return nil, fmt.Errorf("pod %s/%s has priority %d, which must be below %d", o.Pod.Namespace, o.Pod.Name,
				o.Priority, p.Priority)
		case is && !s.leaving(o.Pod):
			chosen = append(chosen, o)
		case o.Priority < p.Priority && s.leaving(o.Pod):
			leaving = append(leaving, o)
		}
	}
	parties := s.gather(chosen, p.Priority, slot)
	for _, o := range chosen {
		if unit := s.units.of[o.Pod.UID]; unit != nil && s.bound && s.binds(unit, p.Priority) {
			return nil, fmt.Errorf("pod %s/%s goes only with its pod group, which must have a priority below "+
				"%d as a whole", o.Pod.Namespace, o.Pod.Name, p.Priority)
		}
	}
	for i := range leaving {
		s.trial.Remove(&leaving[i])
	}
	s.clear(parties)
	if s.refuse(p) != 0 {
		return nil, nil
	}
	s.split(parties)
	s.victims = append(append(s.victims, s.violating...), s.harmless...)
	return s.planOf(p, slot, s.sum()), nil
}

// Better reports whether the plan comes before the other.
func (p *Plan) Better(other *Plan, state *columns.State) bool {
	less, same := p.cost.less(other.cost)
	return less || same && state.Name(p.Slot) < state.Name(other.Slot)
}
