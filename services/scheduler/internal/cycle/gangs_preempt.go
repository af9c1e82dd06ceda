package cycle

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/preempt"
)

// A group takes the room of others only if enough of its Pods fit afterwards, all of them on nodes of one value of the
// label that it is to agree on. Each Pod that fits nowhere is tried as one alone would be, beside the Pods of the group
// that were given nodes before and without the victims found so far; of all these victims those stay that need not go.
// Of the values of the label, the one is taken that has room for most of the Pods, then the one that costs least.

// room is what one Pod of a group takes from others.
type room struct {
	given
	plan preempt.Plan
}

// preemptForGang finds the Pods that go so that all that wait fit, or says why it does not. It leaves no trace.
func (c *Cycle) preemptForGang(g *gangState, members []*pod) (plans []room, why string) {
	switch {
	case !members[0].profile.Preempts || c.state.Nodes() == 0:
		return nil, ""
	case slices.ContainsFunc(members, func(p *pod) bool { return never(p.object) }):
		return nil, "not eligible due to preemptionPolicy=Never."
	case slices.ContainsFunc(members, c.extenders.preemptVerb):
		return nil, "not eligible due to an extender with preemptVerb, which is asked about pods alone."
	case slices.ContainsFunc(members, c.nominations.awaitsVictims):
		return nil, "not eligible due to a terminating pod on the nominated node."
	}
	n := g.count()
	if g.group.Topology == "" {
		plans, _ = c.roomFor(g, members, nil)
	} else {
		plans = c.roomInOne(g, members, n)
	}
	if !g.group.Enough(n, len(plans)) {
		plans, why = nil, "no pods of lower priority make room for enough of the group."
	}
	for _, p := range members { // who gets no room waits for nobody
		if !slices.ContainsFunc(plans, func(r room) bool { return r.pod == p }) {
			c.nominations.set(p, "")
		}
	}
	return plans, why
}

// roomInOne finds room for enough of the Pods on nodes of one value of the group's label; nothing where there is none.
func (c *Cycle) roomInOne(g *gangState, members []*pod, n gang.Count) (best []room) {
	var cheapest preempt.Cost
	domains := c.domainsOf(g)
	for _, value := range slices.Sorted(maps.Keys(domains)) {
		plans, cost := c.roomFor(g, members, domains[value])
		if g.group.Enough(n, len(plans)) &&
			(len(plans) > len(best) || len(plans) == len(best) && cost.Less(cheapest)) {
			best, cheapest = plans, cost
		}
	}
	return best
}

// roomFor finds room for as many of the Pods as it can, on these nodes or, where they are nil, on any, and says what it
// costs. It leaves no trace.
func (c *Cycle) roomFor(g *gangState, members []*pod, among []columns.Slot) ([]room, preempt.Cost) {
	for {
		rooms := c.roomForEach(g, members, among)
		cost, misfit := c.reprieve(members, rooms)
		if misfit == nil {
			return rooms, cost
		}
		members = slices.DeleteFunc(slices.Clone(members), func(p *pod) bool { return p == misfit })
	}
}

// roomForEach finds room for one of the Pods after the other.
func (c *Cycle) roomForEach(g *gangState, members []*pod, among []columns.Slot) (rooms []room) {
	mark := c.state.Gains()
	var placed []given
	for _, p := range members {
		r := room{given: c.turn(g, p)}
		if c.giveFree(&r.given, among) || c.makeRoom(g, p, &r, among) {
			r.plan.Slot = c.state.Slot(r.verdict.Node)
			c.assignBeside(p, r.verdict.Node)
			rooms, placed = append(rooms, r), append(placed, r.given)
		}
	}
	c.undo(members, placed, mark)
	return rooms
}

// makeRoom finds a node for the Pod, and takes its victims away for now.
func (c *Cycle) makeRoom(g *gangState, p *pod, r *room, among []columns.Slot) bool {
	asks := preempt.Preemptor{UID: p.UID, Class: p.class, Priority: g.Priority}
	var plan *preempt.Plan
	if among == nil {
		plan, _ = c.nominations.search.Find(asks)
	} else {
		plan = c.nominations.search.FindAmong(asks, among)
	}
	if plan == nil {
		return false
	}
	r.plan, r.verdict.Node = *plan, c.state.Name(plan.Slot)
	for _, victim := range plan.Victims {
		if o, ok := c.takeAway(victim); ok {
			r.victims = append(r.victims, o)
		}
	}
	for _, uid := range plan.Displaced {
		c.unseat(&r.given, uid)
	}
	return true
}

// gone is a Pod that was taken away from its node for now.
type gone struct {
	columns.Occupant
	node string
}

// takeAway has a Pod be gone, until bringBack.
func (c *Cycle) takeAway(victim *corev1.Pod) (gone, bool) {
	node, _ := c.state.PodNode(victim.UID)
	on := c.state.Occupants(c.state.Slot(node))
	i := slices.IndexFunc(on, func(o columns.Occupant) bool { return o.Pod.UID == victim.UID })
	if i < 0 {
		return gone{}, false
	}
	out := gone{Occupant: on[i], node: node}
	c.state.RemovePod(victim.UID)
	c.victims.budgets.Disrupt(victim)
	c.book.Wait(victim)
	c.book.Moved(c.state)
	return out, true
}

func (c *Cycle) bringBack(o gone) {
	c.state.SetPod(o.Pod, o.node, o.Usage)
	c.victims.budgets.Seen(o.Pod.UID)
	c.book.Use(o.Pod, o.node)
	c.book.Moved(c.state)
}

// goesWith returns the group with which the Pod is evicted or not at all; nil when it is evicted alone.
func (c *Cycle) goesWith(uid types.UID) *gangState {
	g := c.gangs.of[uid]
	if p := c.pods[uid]; g == nil && p != nil {
		g = p.gang
	}
	if g == nil || g.unit == nil {
		return nil
	}
	return g
}

// makeWay keeps the room that a Pod is to have, and has its victims evicted.
func (c *Cycle) makeWay(r *room, why string, now time.Time) {
	p := r.pod
	for _, k := range r.displaced {
		c.displace(k.pod.UID, now)
	}
	c.chosen(r.plan.Victims)
	v := Verdict{Pod: p.object, Nodes: c.state.Nodes(), Group: why, Plan: &r.plan, Nominated: r.verdict.Node}
	p.last = &v
	if len(r.plan.Victims) > 0 {
		p.enter(evicting)
	}
	c.nominations.set(p, r.verdict.Node)
}

// chosen notes that Pods are about to be evicted.
func (c *Cycle) chosen(victims []*corev1.Pod) {
	for _, victim := range victims {
		c.victims.choose(victim)
		if g := c.goesWith(victim.UID); g != nil {
			g.evicted = victim
			c.gangs.spoken[g] = true
		}
	}
}

// evictedForGang notes what became of the victims of a Pod of a group.
func (c *Cycle) evictedForGang(p *pod, err error, now time.Time) {
	g := p.gang
	switch {
	case !c.ready(g): // others still evict, or it waits for something else
	case err == nil && !slices.ContainsFunc(g.members(), func(p *pod) bool { return p.nominated != "" }):
		c.queue.Add(&g.Entry, now) // displaced meanwhile
	case err != nil:
		c.queue.Delay(&g.Entry, now)
	default:
		c.queue.AddUnschedulable(&g.Entry, now)
		c.resumeNominees(g, now)
	}
}
