package cycle

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
)

// The victims of one Pod of a group are the fewest that it needs beside those before it. Together with the victims of
// those after it, they may be more than the group needs. So reprieve spares victims, first those whose disruption a
// budget forbids, the most important first, as long as every Pod of the group still fits on the node that was chosen
// for it, beside those before it.

// reprieve takes out of the rooms of a group the victims that can stay, and returns what the others cost. It returns a
// Pod instead if that does not fit on its node without the victims of those after it. It leaves no trace.
func (s *gangSearch) reprieve(members []*pod, rooms []room) (cost preempt.Cost, misfit *pod) {
	mark, units := s.state.Gains(), s.unitsOf(rooms)
	if len(units) == 0 {
		cost, _ = s.nominations.search.Cost(nil)
		return cost, nil
	}
	for i := range rooms {
		s.removeAll(rooms[i].victims)
		for _, k := range rooms[i].displaced {
			s.nominations.set(k.pod, "")
		}
	}
	misfit = s.assignAll(rooms)
	for spared := misfit == nil; spared; { // sparing one may allow another
		before := len(units)
		units = slices.DeleteFunc(units, func(unit []removed) bool { return s.spare(unit, rooms) })
		spared = len(units) < before
	}
	keepVictims(rooms, units)
	placed := make([]tentative, 0, len(rooms))
	for i := range rooms {
		placed = append(placed, rooms[i].tentative)
	}
	s.undo(members, placed, mark)
	return s.costOf(rooms), misfit
}

// unitsOf returns the victims in the order in which they are spared. The victims of a unit are evicted together or not
// at all.
func (s *gangSearch) unitsOf(rooms []room) (units [][]removed) {
	var victims []columns.Occupant
	nodes := map[types.UID]string{}
	for i := range rooms {
		for _, o := range rooms[i].victims {
			victims = append(victims, o.Occupant)
			nodes[o.Pod.UID] = o.node
		}
	}
	for _, pods := range s.nominations.search.Order(victims) {
		unit := make([]removed, 0, len(pods))
		for _, o := range pods {
			unit = append(unit, removed{Occupant: o, node: nodes[o.Pod.UID]})
		}
		units = append(units, unit)
	}
	return units
}

// spare restores victims if the Pods of the group still fit. These are on their nodes before and after.
func (s *gangSearch) spare(unit []removed, rooms []room) bool {
	for _, o := range unit {
		s.restore(o)
	}
	if slices.ContainsFunc(unit, func(o removed) bool { return s.crowds(o, rooms) }) {
		s.removeAll(unit)
		return false
	}
	s.unassignAll(rooms)
	if s.assignAll(rooms) == nil {
		return true
	}
	s.unassignAll(rooms)
	s.removeAll(unit)
	s.assignAll(rooms)
	return false
}

func (s *gangSearch) removeAll(unit []removed) {
	for _, o := range unit {
		s.remove(o.Pod)
	}
}

// assignAll assigns the Pods to their nodes one by one, and returns the first that does not fit; nil when all do.
func (s *gangSearch) assignAll(rooms []room) *pod {
	for i := range rooms {
		p := rooms[i].pod
		s.classification.renew(p)
		if !s.fitsChosen(p, rooms[i].plan.Slot) {
			return p
		}
		s.assignBeside(p, rooms[i].verdict.Node)
	}
	return nil
}

// unassignAll takes the nodes from the Pods again.
func (s *gangSearch) unassignAll(rooms []room) {
	for _, r := range slices.Backward(rooms) {
		if r.pod.placed() {
			s.placement.unassign(r.pod)
			s.nominations.set(r.pod, r.nominated)
		}
	}
}

// fitsChosen reports whether the Pod fits on the node that was chosen for it: now or, as for any Pod that preempts,
// when the Pods of lower priority that leave are gone.
func (s *gangSearch) fitsChosen(p *pod, slot columns.Slot) bool {
	if s.state.ReservedFor(p.UID) == slot && s.nominations.fits(p, slot) {
		return true
	}
	var t columns.Trial
	t.Start(s.state, slot)
	for _, r := range s.state.Reservations(slot) {
		if r.UID == p.UID {
			t.Release(&r)
		}
	}
	s.nominations.expect(p, &t, slot)
	if p.class.Refuse(s.state, t.Node()) == 0 {
		return true
	}
	for _, o := range s.state.Occupants(slot) {
		if o.Priority < p.Priority && s.victims.leave(o.Pod) {
			t.Remove(&o)
		}
	}
	return p.class.Refuse(s.state, t.Node()) == 0
}

// crowds reports whether a Pod of the group lacks room beside a restored victim. Apart from domains, a full node
// refuses a Pod whichever came first, so there is no need to try all of them in turn.
func (s *gangSearch) crowds(victim removed, rooms []room) bool {
	slot := s.state.Slot(victim.node)
	on := s.state.Occupants(slot)
	for i := range rooms {
		p := rooms[i].pod
		if rooms[i].plan.Slot != slot || p.class.Pod.Volumes != nil {
			continue
		}
		var t columns.Trial
		t.Start(s.state, slot)
		for k := range on {
			if on[k].Pod.UID == p.UID || s.victims.leave(on[k].Pod) {
				t.Remove(&on[k])
			}
		}
		for _, kept := range s.state.Reservations(slot) {
			if kept.Priority < p.Priority {
				t.Release(&kept)
			}
		}
		if r := p.class.Refuse(s.state, t.Node()); r != 0 && !p.class.OfDomain(r) {
			return true
		}
	}
	return false
}

// keepVictims drops all victims from the rooms but those of the units.
func keepVictims(rooms []room, units [][]removed) {
	left := map[types.UID]bool{}
	for _, unit := range units {
		for _, o := range unit {
			left[o.Pod.UID] = true
		}
	}
	for i := range rooms {
		r := &rooms[i]
		r.victims = slices.DeleteFunc(r.victims, func(o removed) bool { return !left[o.Pod.UID] })
		r.plan.Victims = r.plan.Victims[:0]
		for _, o := range r.victims {
			r.plan.Victims = append(r.plan.Victims, o.Pod)
		}
	}
}

// costOf returns what the rooms cost together, and notes in each how many of its victims violate a budget.
func (s *gangSearch) costOf(rooms []room) preempt.Cost {
	var victims []columns.Occupant
	for i := range rooms {
		for _, o := range rooms[i].victims {
			victims = append(victims, o.Occupant)
		}
	}
	cost, violated := s.nominations.search.Cost(victims)
	for i := range rooms {
		r := &rooms[i]
		r.plan.Violations = 0
		for _, uid := range violated {
			if slices.ContainsFunc(r.victims, func(v removed) bool { return v.Pod.UID == uid }) {
				r.plan.Violations++
			}
		}
	}
	return cost
}
