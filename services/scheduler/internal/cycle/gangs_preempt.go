package cycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
)

// A group takes the room of others only if enough of its Pods fit afterwards. Each Pod that fits nowhere is tried as
// one alone would be, beside the Pods of the group that were given nodes before and without the victims found so far.

// room is what one Pod of a group takes from others.
type room struct {
	given
	plan    preempt.Plan
	victims []columns.Occupant
}

// preemptForGang finds the Pods that go so that all that wait fit, or says why it does not. It leaves no trace.
func (c *Cycle) preemptForGang(g *gangState, members []*pod) (plans []room, why string) {
	switch {
	case !members[0].profile.Preempts || c.state.Nodes() == 0:
		return nil, ""
	case g.group.Topology != "":
		return nil, "not eligible due to schedulingConstraints.topology."
	case slices.ContainsFunc(members, func(p *pod) bool { return never(p.object) }):
		return nil, "not eligible due to preemptionPolicy=Never."
	case slices.ContainsFunc(members, c.awaitsVictims):
		return nil, "not eligible due to a terminating pod on the nominated node."
	}
	mark, n := c.state.Gains(), g.count()
	for _, p := range members {
		r := room{given: given{pod: p, nominated: p.nominated,
			verdict: Verdict{Pod: p.object, Nodes: c.state.Nodes(), Attempt: g.Attempts + 1}}}
		if c.takeNomination(p, &r.verdict) || c.giveBest(p, &r.verdict, nil) || c.makeRoom(g, p, &r) {
			r.plan.Slot = c.state.Slot(r.verdict.Node)
			c.assign(p, r.verdict.Node)
			plans = append(plans, r)
		}
	}
	for _, r := range slices.Backward(plans) {
		c.takeBack([]given{r.given})
		for i := range r.victims {
			o := &r.victims[i]
			c.state.SetPod(o.Pod, o.Pod.Spec.NodeName, o.Usage)
		}
	}
	c.state.ForgetGains(mark)
	if !g.group.Enough(n, len(plans)) {
		for _, p := range members {
			c.nominate(p, "")
		}
		return nil, "no pods of lower priority make room for enough of the group."
	}
	return plans, ""
}

// makeRoom finds a node for the Pod, and takes its victims away for now.
func (c *Cycle) makeRoom(g *gangState, p *pod, r *room) bool {
	asks := preempt.Preemptor{UID: p.UID, Class: p.class, Priority: g.Priority}
	plan, _ := c.preemption.search.Find(asks)
	if plan == nil {
		return false
	}
	victims, ok := c.together(plan.Victims, g.Priority)
	if !ok {
		return false
	}
	r.plan, r.verdict.Node = *plan, c.state.Name(plan.Slot)
	r.plan.Victims = victims
	for _, victim := range victims {
		if o, ok := c.occupant(victim); ok {
			r.victims = append(r.victims, o)
			c.state.RemovePod(victim.UID)
		}
	}
	return true
}

// occupant returns what a victim takes.
func (c *Cycle) occupant(victim *corev1.Pod) (columns.Occupant, bool) {
	on := c.state.Occupants(c.state.Slot(victim.Spec.NodeName))
	i := slices.IndexFunc(on, func(o columns.Occupant) bool { return o.Pod.UID == victim.UID })
	if i < 0 {
		return columns.Occupant{}, false
	}
	return on[i], true
}

// together adds to victims the Pods that are evicted with them or not at all. It returns false when one of these may
// not be evicted.
func (c *Cycle) together(victims []*corev1.Pod, priority int32) ([]*corev1.Pod, bool) {
	all := slices.Clone(victims)
	for _, victim := range victims {
		g := c.gangs.of[victim.UID]
		if g == nil || g.group == nil || !g.group.Together {
			continue
		}
		if g.Priority >= priority {
			return nil, false
		}
		var others []*corev1.Pod
		for _, p := range g.placed {
			if columns.Priority(p) >= priority {
				return nil, false
			}
			if !c.leaves(p) && !slices.ContainsFunc(all, func(v *corev1.Pod) bool { return v.UID == p.UID }) {
				others = append(others, p)
			}
		}
		slices.SortFunc(others, func(a, b *corev1.Pod) int { return compareUID(a.UID, b.UID) })
		all = append(all, others...)
	}
	return all, true
}

func compareUID(a, b types.UID) int {
	if a < b {
		return -1
	}
	return 1
}

// makeWay keeps the room that a Pod is to have, and has its victims evicted.
func (c *Cycle) makeWay(r *room, why string, now time.Time) {
	p := r.pod
	for _, uid := range r.plan.Displaced {
		c.displace(uid, now)
	}
	c.chosen(r.plan.Victims)
	v := Verdict{Pod: p.object, Nodes: c.state.Nodes(), Group: why, Plan: &r.plan, Nominated: r.verdict.Node}
	p.last, p.evicting = &v, len(r.plan.Victims) > 0
	c.nominate(p, r.verdict.Node)
}

// chosen notes that Pods are about to be evicted.
func (c *Cycle) chosen(victims []*corev1.Pod) {
	for _, victim := range victims {
		c.preemption.goes(victim)
		if g := c.gangs.of[victim.UID]; g != nil && g.group != nil && g.group.Together {
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
	case err != nil:
		c.queue.Delay(&g.Entry, now)
	default:
		c.queue.AddUnschedulable(&g.Entry, now)
		c.resumeNominees(g, now)
	}
}
