package cycle

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
)

// A Pod whose profile says so may take the room of Pods on other nodes, where these keep it from a node by the counts
// of a domain that both are in. Room is kept for it on its own node alone, so until it has its node no Pod of its
// priority or below comes into these domains that would count there: what its victims leave, their successors do not
// take.

// kept is the reason of a node that no rule speaks against.
const kept = "node(s) are in a domain for which a Pod of no lower priority waits"

// disturbed returns the Pods that the Pod on that node would keep from theirs, and that wait for victims on others.
func (c *Cycle) disturbed(p *pod, slot columns.Slot) (uids []types.UID) {
	for uid := range c.preemption.across {
		other := c.pods[uid]
		if other == nil || uid == p.UID || other.placed() {
			continue
		}
		of := c.state.ReservedFor(uid)
		if of != columns.None && preempt.Disturbs(c.state, p.object, p.class.Pod.Terms, slot, other.class, of) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// disturbs reports whether one of these comes first.
func (c *Cycle) disturbs(p *pod, slot columns.Slot) bool {
	return slices.ContainsFunc(c.disturbed(p, slot),
		func(uid types.UID) bool { return c.pods[uid].Priority >= p.Priority })
}

// displaceAcross lets those look for another node whom a Pod that comes first keeps from theirs.
func (c *Cycle) displaceAcross(p *pod, now time.Time) {
	if len(c.preemption.across) == 0 {
		return
	}
	for _, uid := range c.disturbed(p, c.state.Slot(p.node)) {
		c.displace(uid, now)
	}
}

// best returns the best node for the Pod, and how many it must leave to others.
func (c *Cycle) best(p *pod) (choice class.Choice, left int, ok bool) {
	choice, ok = p.class.Best(c.state)
	if !ok || len(c.preemption.across) == 0 {
		return choice, 0, ok
	}
	takers := c.takers(p)
	if len(takers) == choice.Feasible {
		return choice, 0, true
	}
	left = choice.Feasible - len(takers)
	choice, ok = p.class.BestAmong(c.state, takers, nil)
	return choice, left, ok
}

// takers returns the nodes that can take the Pod and where it disturbs nobody.
func (c *Cycle) takers(p *pod) []columns.Slot {
	return slices.DeleteFunc(p.class.Takers(c.state), func(slot columns.Slot) bool { return c.disturbs(p, slot) })
}

// requeueAcross requeues the Pods whose victims on other nodes are gone.
func (c *Cycle) requeueAcross(now time.Time) {
	if len(c.preemption.across) == 0 {
		return
	}
	var uids []types.UID
	for uid := range c.preemption.across {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	for _, uid := range uids {
		p, slot := c.pods[uid], c.state.ReservedFor(uid)
		if p != nil && !p.placed() && slot != columns.None && c.fitsNominated(p, slot) {
			c.queue.Activate(&p.Entry, now)
		}
	}
}
