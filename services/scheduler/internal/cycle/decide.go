package cycle

import (
	"time"

	"keelson.dev/services/scheduler/internal/class"
)

// decide gives the Pod a node, or the room of others, or says why there is neither.
func (c *Cycle) decide(p *pod, now time.Time) Verdict {
	v := c.verdict(p)
	c.classes.Touch(p.class, c.state)
	defer c.nominations.hold(p)()
	if c.extenders.consult(p, &v) {
		return v
	}
	if c.nominations.take(p, &v) {
		return v
	}
	choice, left, ok := c.nominations.best(p)
	if !ok && left > 0 {
		v.Reasons = append(p.class.Refusals(c.state), class.Reason{Text: kept, Nodes: left})
		return v
	}
	if !ok {
		if c.outrank(p, c.nominations.nodesReservedBelow(p), &v, now) {
			return v
		}
		v.Reasons = p.class.Refusals(c.state)
		c.preempt(p, &v, now)
		return v
	}
	v.Node, v.Score, v.Feasible = c.state.Name(choice.Slot), choice.Score, choice.Feasible
	return v
}

// verdict begins the outcome of a try.
func (c *Cycle) verdict(p *pod) Verdict {
	return Verdict{Pod: p.object, Nodes: c.state.Nodes(), Attempt: p.Attempts + 1, Arrived: p.Arrived()}
}

// conclude takes over what was decided for a Pod.
func (c *Cycle) conclude(p *pod, v Verdict, now time.Time) Verdict {
	p.last = &v
	if v.Question != nil {
		c.extenders.ask(p, v.Question)
		return v
	}
	if v.Node == "" {
		if p.phase != evicting {
			c.unschedulable.put(p, now)
		}
		return v
	}
	v.Steps = c.placement.assign(p, v.Node)
	c.displaceAcross(p, now)
	c.unschedulable.requeueMore(p.class, now)
	return v
}
