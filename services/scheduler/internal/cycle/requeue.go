package cycle

import (
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/columns"
)

// catchUp takes in what happened since the last decision.
func (c *Cycle) catchUp(now time.Time) {
	c.check()
	c.readGroups(now)
	c.classification.rekey()
	c.readClaims(now)
	c.requeueGained(now)
}

// requeueGained requeues Pods for the nodes and the domains that may have become better since the last call.
func (c *Cycle) requeueGained(now time.Time) {
	c.gangs.enqueueShrunk(now)
	c.victims.units.Note(c.state)
	c.unschedulable.lookAgain(now)
	c.displaceOfLeft(now)
	c.unschedulable.requeueOfDomains(now)
	gains := c.state.TakeGains()
	c.gangs.resume(len(gains) > 0, now)
	if len(gains) == 0 {
		return
	}
	c.gangs.requeueNominees(now, gains...)
	c.unschedulable.requeueFor(gains, now)
}

// displaceOfLeft lets the Pods look for another node that are nominated for one that is gone.
func (c *Cycle) displaceOfLeft(now time.Time) {
	for _, name := range c.left {
		slot := c.state.Slot(name)
		if slot == columns.None || c.state.Known(slot) {
			continue
		}
		for _, r := range slices.Clone(c.state.Reservations(slot)) {
			c.gangs.displace(r.UID, now)
		}
	}
	c.left = nil
}
