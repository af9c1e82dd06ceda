package cycle

import (
	"maps"
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/preempt"
)

// A group preempts only if enough of its Pods fit afterwards, all of them on nodes with one value of its topology
// label. Each Pod that fits nowhere is tried as one alone would be, beside the Pods of the group that have nodes and
// without the victims found so far. In the end, the victims that need not go are spared. The search takes the value of
// the label that has room for most of the Pods, and of several the one that costs least.

// room is the node of one Pod of a group, with the victims that it preempts there.
type room struct {
	tentative
	plan preempt.Plan
}

// preempt finds victims so that all Pods that wait fit, or says why it finds none. It leaves no trace.
func (s *gangSearch) preempt(g *gangState, members []*pod) (plans []room, why string) {
	switch {
	case !members[0].profile.Preempts || s.state.Nodes() == 0:
		return nil, ""
	case slices.ContainsFunc(members, func(p *pod) bool { return never(p.object) }):
		return nil, "not eligible due to preemptionPolicy=Never."
	case slices.ContainsFunc(members, s.extenders.preemptVerb):
		return nil, "not eligible due to an extender with preemptVerb, which is asked about pods alone."
	case slices.ContainsFunc(members, s.nominations.awaitsVictims):
		return nil, "not eligible due to a terminating pod on the nominated node."
	}
	n := g.count()
	if g.group.Topology == "" {
		plans, _ = s.roomFor(g, members, nil)
	} else {
		plans = s.roomInOne(g, members, n)
	}
	if !g.group.Enough(n, len(plans)) {
		plans, why = nil, "no pods of lower priority make room for enough of the group."
	}
	for _, p := range members { // a Pod without room waits for no victims
		if !slices.ContainsFunc(plans, func(r room) bool { return r.pod == p }) {
			s.nominations.set(p, "")
		}
	}
	return plans, why
}

// roomInOne finds room for enough of the Pods on nodes with one value of the group's label; nil if there is none.
func (s *gangSearch) roomInOne(g *gangState, members []*pod, n gang.Count) (best []room) {
	var cheapest preempt.Cost
	domains := s.domainsOf(g)
	for _, value := range slices.Sorted(maps.Keys(domains)) {
		plans, cost := s.roomFor(g, members, domains[value])
		if g.group.Enough(n, len(plans)) &&
			(len(plans) > len(best) || len(plans) == len(best) && cost.Less(cheapest)) {
			best, cheapest = plans, cost
		}
	}
	return best
}

// roomFor finds room for as many of the Pods as it can, on these nodes or, if they are nil, on any. It returns the cost
// as well. It leaves no trace.
func (s *gangSearch) roomFor(g *gangState, members []*pod, among []columns.Slot) ([]room, preempt.Cost) {
	for {
		rooms := s.roomForEach(g, members, among)
		cost, misfit := s.reprieve(members, rooms)
		if misfit == nil {
			return rooms, cost
		}
		members = slices.DeleteFunc(slices.Clone(members), func(p *pod) bool { return p == misfit })
	}
}

// roomForEach finds room for one of the Pods after the other.
func (s *gangSearch) roomForEach(g *gangState, members []*pod, among []columns.Slot) (rooms []room) {
	mark := s.state.Gains()
	var placed []tentative
	for _, p := range members {
		r := room{tentative: s.begin(g, p)}
		if s.findFree(&r.tentative, among) || s.makeRoom(g, p, &r, among) {
			r.plan.Slot = s.state.Slot(r.verdict.Node)
			s.assignBeside(p, r.verdict.Node)
			rooms, placed = append(rooms, r), append(placed, r.tentative)
		}
	}
	s.undo(members, placed, mark)
	return rooms
}

// makeRoom finds a node for the Pod, and removes its victims tentatively.
func (s *gangSearch) makeRoom(g *gangState, p *pod, r *room, among []columns.Slot) bool {
	asks := preempt.Preemptor{UID: p.UID, Class: p.class, Priority: g.Priority}
	var plan *preempt.Plan
	if among == nil {
		plan, _ = s.nominations.search.Find(asks)
	} else {
		plan = s.nominations.search.FindAmong(asks, among)
	}
	if plan == nil {
		return false
	}
	r.plan, r.verdict.Node = *plan, s.state.Name(plan.Slot)
	for _, victim := range plan.Victims {
		if o, ok := s.remove(victim); ok {
			r.victims = append(r.victims, o)
		}
	}
	for _, uid := range plan.Displaced {
		s.displace(&r.tentative, uid)
	}
	return true
}
