package cycle

import (
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/extend"
	"keelson.dev/services/scheduler/internal/gang"
)

// A group on whose Pods extenders have a say is decided upon when they have answered about each of them. They are asked
// about one after the other, as about Pods alone, and nothing is given meanwhile: an extender that hangs costs its
// group a time-out and others nothing, and there is nothing to undo.

// consultGang sees to it that extenders are asked about the next of the Pods. It returns false when there is nothing
// more to ask, as one of them failed or all have answered.
func (c *Cycle) consultGang(g *gangState, members []*pod, now time.Time) bool {
	if slices.ContainsFunc(members, (*pod).unanswerable) {
		return false
	}
	for _, p := range members {
		switch {
		case len(p.asks) == 0 || p.answer != nil:
			continue
		case p.phase == asking:
			return true // Answered goes on
		case c.extenders.asking(p):
			c.queue.Hold(&g.Entry, lineOf(p.asks), now)
			return true
		}
		v := c.turn(g, p).verdict
		release := c.nominations.hold(p)
		asks := c.extenders.consult(p, &v)
		release()
		if !asks {
			p.answer = &answer{}
			continue
		}
		c.extenders.ask(p, v.Question)
		p.last = &v
		c.gangs.decided = append(c.gangs.decided, v)
		return true
	}
	return false
}

// answeredForGang takes what extenders say about a Pod of a group, which goes on. What they say of a Pod that changed
// meanwhile is of no use.
func (c *Cycle) answeredForGang(p *pod, a extend.Answer, now time.Time) {
	if !c.ready(p.gang) {
		return
	}
	if p.last != nil {
		p.answer = newAnswer(a)
	}
	c.queue.Return(&p.gang.Entry, now)
}

// goOn has the group of a Pod that is gone, and about which extenders were asked, ask about the others.
func (c *Cycle) goOn(q *extend.Question, now time.Time) {
	name, ok := gang.NameOf(q.Pod)
	if g := c.gangs.byName[name]; ok && g != nil {
		c.queueGang(g, now)
	}
}
