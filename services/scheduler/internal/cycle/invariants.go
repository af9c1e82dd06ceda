//go:build invariants

package cycle

import (
	"fmt"
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/queue"
)

// What must hold between two calls, checked where the program is built with -tags invariants. A decision that would
// rest on anything else ends the program instead.

// moves are those from one phase to others; what the API shows of a Pod ends each of them.
var moves = map[phase][]phase{
	pending:   {gated, nominated, asking, evicting, assumed},
	gated:     {pending, nominated},
	nominated: {gated, pending, asking, evicting, assumed},
	asking:    {pending, gated, nominated},
	evicting:  {pending, gated, nominated},
	assumed:   {pending, claiming},
	claiming:  {pending, assumed},
}

// checkMove panics where no Pod comes from its phase to that one.
func checkMove(p *pod, to phase) {
	if p.phase != to && !slices.Contains(moves[p.phase], to) {
		panic(fmt.Sprintf("pod %s goes from %s to %s", p.UID, p.phase, to))
	}
}

// check panics where what is known of a Pod is not what its phase says.
func (c *Cycle) check() {
	for _, p := range c.pods {
		if wrong := c.wrong(p); wrong != "" {
			panic(fmt.Sprintf("pod %s is %s: %s", p.UID, p.phase, wrong))
		}
	}
	for _, g := range c.gangs.byName {
		if c.gangs.forgotten(g) {
			panic(fmt.Sprintf("pod group %s could be tried and is not in the queue", g.name))
		}
	}
}

// forgotten reports whether nothing would ever try a group that can be tried. While extenders are asked about a Pod,
// even about one that is gone by now, their answer may have its group go on.
func (gs *gangs) forgotten(g *gangState) bool {
	place, _, _ := g.Place()
	return place == queue.Nowhere && gs.ready(g) &&
		!slices.Contains(gs.shrunk, g) && !slices.Contains(gs.extenders.busy, true) &&
		!slices.ContainsFunc(gs.decided, func(v Verdict) bool { return g.waiting[v.Pod.UID] != nil })
}

// wrong says what does not go with the phase of the Pod; nothing where all does.
func (c *Cycle) wrong(p *pod) string {
	place, _, _ := p.Place()
	slot := c.state.ReservedFor(p.UID)
	node, takes := c.state.PodNode(p.UID)
	switch {
	case p.placed() != (p.node != ""):
		return fmt.Sprintf("its node is %q", p.node)
	case takes != p.placed() || node != p.node:
		return fmt.Sprintf("its node is %q and it takes room on %q", p.node, node)
	case (p.phase == asking) != (p.question != nil):
		return "a question and its phase go together"
	case (p.phase == claiming) != (p.claims != nil):
		return "a wait for claims and its phase go together"
	case !p.waits() && place != queue.Nowhere:
		return fmt.Sprintf("its place in the queue is %s", place)
	case p.waits() && p.gang == nil && c.leading[p.profile.Name] && place == queue.Nowhere:
		return "it is not in the queue"
	case p.gang != nil && place != queue.Nowhere:
		return "it is in the queue beside its group"
	case p.phase == gated && !isGated(p.object) || p.waits() && isGated(p.object):
		return "it has other gates"
	case p.phase == nominated && slot == columns.None, p.phase == pending && slot != columns.None:
		return "a nomination and its phase go together"
	case slot != columns.None && c.state.Name(slot) != p.nominated:
		return fmt.Sprintf("room is kept on %s, and it is nominated for %q", c.state.Name(slot), p.nominated)
	}
	return ""
}
