package cycle

import (
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/columns"
)

// requeueGained requeues Pods for the nodes and the domains that may have become better since the last call.
func (c *Cycle) requeueGained(now time.Time) {
	c.victims.units.Note(c.state)
	c.unschedulable.lookAgain(now)
	c.displaceOfLeft(now)
	c.unschedulable.requeueOfDomains(now)
	gains := c.state.TakeGains()
	c.resumeGangs(len(gains) > 0, now)
	if len(gains) == 0 {
		return
	}
	c.requeueNominees(now, gains...)
	c.unschedulable.requeueFor(gains, now)
}

// requeueNominees requeues the Pods that are nominated for these nodes: those that fit there now whatever their delay,
// as they have waited for nothing else, and those whose victims are gone in vain.
func (c *Cycle) requeueNominees(now time.Time, slots ...columns.Slot) {
	var groups []*gangState
	for _, slot := range slots {
		for _, r := range c.state.Reservations(slot) {
			p := c.pods[r.UID]
			switch {
			case p == nil || p.placed():
			case p.gang != nil:
				groups = append(groups, p.gang)
			case c.nominations.fits(p, slot):
				c.queue.Activate(&p.Entry, now)
			case !c.nominations.awaitsVictims(p):
				c.queue.Resume(&p.Entry, now)
			}
		}
	}
	for i, g := range groups {
		if !slices.Contains(groups[:i], g) {
			c.resumeNominees(g, now)
		}
	}
}
