package cycle

import (
	"fmt"
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/extender"
	"keelson.dev/services/scheduler/internal/preempt"
)

// Answered takes what extenders say. It returns false when there is nothing to do for the Pod now.
func (c *Cycle) Answered(q *extender.Question, a extender.Answer, now time.Time) (Verdict, bool) {
	c.catchUp(now)
	c.extenders.free(q)
	p := c.pods[q.Pod.UID]
	if p == nil || p.question != q {
		c.gangs.goOn(q, now)
		return Verdict{}, false
	}
	c.classification.reread(p)
	p.question = nil
	p.rest()
	switch {
	case p.gang != nil:
		c.gangs.answered(p, a, now)
		return Verdict{}, false
	case p.phase == gated || !c.leading[p.profile.Name]:
		return Verdict{}, false
	case p.last == nil: // changed meanwhile
		c.queue.Add(&p.Entry, now)
		return Verdict{}, false
	case a.Err != nil:
		v := c.verdict(p)
		v.Failure = a.Err.Error()
		return c.delayed(p, v, now), true
	case q.Plans != nil:
		return c.choosePlan(p, a, now)
	}
	v := c.verdict(p)
	switch {
	case c.choose(p, a, &v, now):
		return c.conclude(p, v, now), true
	case len(a.Left) > 0: // taken meanwhile
		c.queue.Return(&p.Entry, now)
		return Verdict{}, false
	}
	v.Reasons = append(c.nominations.refusals(p), refusedBy(a.Failed)...)
	c.preempt(p, &v, now)
	return c.delayed(p, v, now), true
}

// delayed is conclude for a Pod that an extender keeps from its node: no event here says when it changes
// its mind, so the Pod is tried again after a delay.
func (c *Cycle) delayed(p *pod, v Verdict, now time.Time) Verdict {
	if v.Question != nil || p.phase == evicting {
		return c.conclude(p, v, now)
	}
	p.last = &v
	c.queue.Delay(&p.Entry, now)
	return v
}

// choose gives the Pod one of the nodes that its extenders left.
func (c *Cycle) choose(p *pod, a extender.Answer, v *Verdict, now time.Time) bool {
	defer c.nominations.hold(p)()
	said := newAnswer(a)
	if c.extenders.choose(p, said, v) {
		return true
	}
	reserved := slices.DeleteFunc(c.nominations.nodesReservedBelow(p),
		func(slot columns.Slot) bool { return !c.extenders.left(said, slot) })
	return c.outrank(p, reserved, v, now)
}

// choosePlan takes the cheapest of the plans that extenders left.
func (c *Cycle) choosePlan(p *pod, a extender.Answer, now time.Time) (Verdict, bool) {
	v := *p.last
	v.Question = nil
	best, err := c.extenders.cheapest(p, a.Plans)
	switch {
	case len(a.Plans) == 0:
		c.recordNoVictims(p, &v, []string{fmt.Sprintf("%d %s", v.Nodes, preempt.Refused)})
	case err != nil:
		v.Failure = err.Error()
	case best == nil:
		v.Preemption = "what extenders chose makes no room by now."
	default:
		c.carryOut(p, &v, best, now)
	}
	return c.delayed(p, v, now), true
}
