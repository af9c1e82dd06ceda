package cycle

import (
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/extender"
	"keelson.dev/services/scheduler/internal/gang"
)

// The Cycle decides on a group on whose Pods extenders have a say when they have answered about each Pod. It asks them
// about one Pod after the other, as about Pods alone, and assigns no node meanwhile: an extender that hangs costs its
// group a time-out and others nothing, and there is nothing to undo.

// consult sees to it that extenders are asked about the next of the Pods. It returns false when there is nothing
// more to ask, as one of them failed or all have answered.
func (gs *gangs) consult(g *gangState, members []*pod, now time.Time) bool {
	if slices.ContainsFunc(members, (*pod).unanswerable) {
		return false
	}
	for _, p := range members {
		switch {
		case p.phase == asking:
			return true // Answered goes on
		case len(p.asks) == 0 || p.answer != nil:
			continue
		case gs.extenders.asking(p):
			gs.queue.Hold(&g.Entry, lineOf(p.asks), now)
			return true
		}
		v := gs.search.begin(g, p).verdict
		release := gs.nominations.hold(p)
		asks := gs.extenders.consult(p, &v)
		release()
		if !asks {
			p.answer = &answer{}
			continue
		}
		gs.extenders.ask(p, v.Question)
		p.last = &v
		gs.decided = append(gs.decided, v)
		return true
	}
	return false
}

// answered takes what extenders say about a Pod of a group, which goes on. What they say of a Pod that changed
// meanwhile is of no use.
func (gs *gangs) answered(p *pod, a extender.Answer, now time.Time) {
	if !gs.ready(p.gang) {
		return
	}
	if p.last != nil {
		p.answer = newAnswer(a)
	}
	gs.queue.Return(&p.gang.Entry, now)
}

// goOn has the group of a Pod that is gone, and about which extenders were asked, ask about the others.
func (gs *gangs) goOn(q *extender.Question, now time.Time) {
	name, ok := gang.NameOf(q.Pod)
	if g := gs.byName[name]; ok && g != nil {
		gs.enqueue(g, now)
	}
}
