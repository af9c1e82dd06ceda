package cycle

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
)

// What one Pod of a group takes is the least that it needs beside those before it. With what those after it take, that
// may be more than all of them need. So in the end victims stay, those first whose disruption a budget forbids, the
// most important first, as long as every Pod of the group still fits on the node that was chosen for it, beside those
// before it.

// reprieve takes out of the rooms of a group the victims that can stay, and returns what the others cost. It returns a
// Pod instead if that does not fit on its node without the victims of those after it. It leaves no trace.
func (s *gangSearch) reprieve(members []*pod, rooms []room) (cost preempt.Cost, misfit *pod) {
	mark, units := s.state.Gains(), s.unitsOf(rooms)
	if len(units) == 0 {
		cost, _ = s.nominations.search.Cost(nil)
		return cost, nil
	}
	for i := range rooms {
		s.takeAll(rooms[i].victims)
		for _, k := range rooms[i].displaced {
			s.nominations.set(k.pod, "")
		}
	}
	misfit = s.stand(rooms)
	for spared := misfit == nil; spared; { // one that stays may let another stay
		before := len(units)
		units = slices.DeleteFunc(units, func(unit []gone) bool { return s.putBack(unit, rooms) })
		spared = len(units) < before
	}
	keepVictims(rooms, units)
	placed := make([]given, 0, len(rooms))
	for i := range rooms {
		placed = append(placed, rooms[i].given)
	}
	s.undo(members, placed, mark)
	return s.costOf(rooms), misfit
}

// unitsOf returns the victims, those together that are evicted together or not at all, in the order in which they are
// spared.
func (s *gangSearch) unitsOf(rooms []room) (units [][]gone) {
	var victims []columns.Occupant
	nodes := map[types.UID]string{}
	for i := range rooms {
		for _, o := range rooms[i].victims {
			victims = append(victims, o.Occupant)
			nodes[o.Pod.UID] = o.node
		}
	}
	for _, pods := range s.nominations.search.Order(victims) {
		unit := make([]gone, 0, len(pods))
		for _, o := range pods {
			unit = append(unit, gone{Occupant: o, node: nodes[o.Pod.UID]})
		}
		units = append(units, unit)
	}
	return units
}

// putBack lets victims stay if the Pods of the group still fit, which are on their nodes before and after.
func (s *gangSearch) putBack(unit []gone, rooms []room) bool {
	for _, o := range unit {
		s.bringBack(o)
	}
	if slices.ContainsFunc(unit, func(o gone) bool { return s.crowds(o, rooms) }) {
		s.takeAll(unit)
		return false
	}
	s.stepBack(rooms)
	if s.stand(rooms) == nil {
		return true
	}
	s.stepBack(rooms)
	s.takeAll(unit)
	s.stand(rooms)
	return false
}

func (s *gangSearch) takeAll(unit []gone) {
	for _, o := range unit {
		s.takeAway(o.Pod)
	}
}

// stand gives the Pods their nodes one by one, and returns the first that does not fit; nil when all do.
func (s *gangSearch) stand(rooms []room) *pod {
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

// stepBack takes their nodes from the Pods again.
func (s *gangSearch) stepBack(rooms []room) {
	for _, r := range slices.Backward(rooms) {
		if r.pod.placed() {
			s.placement.giveUp(r.pod)
			s.nominations.set(r.pod, r.nominated)
		}
	}
}

// fitsChosen reports whether the Pod fits on the node that was chosen for it: now or, as for any that takes the room of
// others, when those of lower priority are gone that leave.
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

// crowds reports whether a Pod of the group lacks room beside a victim that is back. Domains aside, what speaks against
// a Pod on a full node does so whoever came first, so there is no need to try all of them in turn.
func (s *gangSearch) crowds(victim gone, rooms []room) bool {
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

// keepVictims leaves in the rooms the victims of the units.
func keepVictims(rooms []room, units [][]gone) {
	left := map[types.UID]bool{}
	for _, unit := range units {
		for _, o := range unit {
			left[o.Pod.UID] = true
		}
	}
	for i := range rooms {
		r := &rooms[i]
		r.victims = slices.DeleteFunc(r.victims, func(o gone) bool { return !left[o.Pod.UID] })
		r.plan.Victims = r.plan.Victims[:0]
		for _, o := range r.victims {
			r.plan.Victims = append(r.plan.Victims, o.Pod)
		}
	}
}

// costOf returns what the rooms cost together, and notes in each how many of its victims no budget lets go.
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
			if slices.ContainsFunc(r.victims, func(v gone) bool { return v.Pod.UID == uid }) {
				r.plan.Violations++
			}
		}
	}
	return cost
}
