package cycle

import (
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/extend"
	"keelson.dev/services/scheduler/internal/gang"
)

// A group on whose Pods extenders have a say is decided upon when they have answered about each of them. They are asked
// about one after the other, as about Pods alone, and nothing is given meanwhile: an extender that hangs costs its
// group a time-out and others nothing, and there is nothing to undo.

// answer is what extenders said about a Pod of a group, until the group is decided upon.
type answer struct {
	extend.Answer
	left map[string]bool
}

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
		case c.asking(p):
			c.queue.Hold(&g.Entry, lineOf(p.asks), now)
			return true
		}
		v := c.turn(g, p).verdict
		release := c.nominations.hold(p)
		asks := c.consult(p, &v)
		release()
		if !asks {
			p.answer = &answer{}
			continue
		}
		c.extenders.occupy(v.Question)
		p.last = &v
		p.ask(v.Question)
		c.gangs.decided = append(c.gangs.decided, v)
		return true
	}
	return false
}

// unanswerable reports whether an extender gave no answer of use about the Pod.
func (p *pod) unanswerable() bool { return p.answer != nil && p.answer.Err != nil }

// answeredForGang takes what extenders say about a Pod of a group, which goes on. What they say of a Pod that changed
// meanwhile is of no use.
func (c *Cycle) answeredForGang(p *pod, a extend.Answer, now time.Time) {
	if !c.ready(p.gang) {
		return
	}
	if p.last != nil {
		p.answer = &answer{Answer: a, left: map[string]bool{}}
		for _, name := range a.Left {
			p.answer.left[name] = true
		}
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

// forgetAnswers forgets what extenders said: it held for one decision.
func forgetAnswers(pods []*pod) {
	for _, p := range pods {
		p.answer = nil
	}
}

// passes reports whether the extenders let the Pod onto the node.
func (c *Cycle) passes(p *pod, slot columns.Slot) bool {
	return len(p.asks) == 0 || slot != columns.None && p.answer != nil && p.answer.left[c.state.Name(slot)]
}

// bestPassed returns the best of the nodes, of all if they are nil, onto which the extenders let the Pod.
func (c *Cycle) bestPassed(p *pod, among []columns.Slot) (class.Choice, bool) {
	takers := slices.DeleteFunc(c.nominations.takers(p), func(slot columns.Slot) bool {
		return !c.passes(p, slot) || among != nil && !slices.Contains(among, slot)
	})
	return p.class.BestAmong(c.state, takers, func(slot columns.Slot) int64 {
		return p.answer.Scores[c.state.Name(slot)]
	})
}

// refusedByExtenders reports whether extenders keep one of the Pods from a node. Nothing that happens here tells when
// they change their mind.
func refusedByExtenders(members []*pod) bool {
	return slices.ContainsFunc(members, func(p *pod) bool {
		return p.answer != nil && (p.answer.Err != nil || len(p.answer.Failed) > 0)
	})
}

// preemptVerb reports whether an extender has a say on whose room the Pod takes.
func (c *Cycle) preemptVerb(p *pod) bool {
	return slices.ContainsFunc(p.asks, func(i int) bool { return c.extenders.list[i].PreemptVerb != "" })
}
