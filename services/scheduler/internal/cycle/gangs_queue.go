package cycle

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/queue"
)

// When a group is tried: once it has the Pods that it asks for, and again when there may be room for all of them.

// ready reports whether the group can be tried.
func (gs *gangs) ready(g *gangState) bool {
	n := g.count()
	return n.Waiting > 0 && gs.leading[g.profile.Name] && g.evicting == 0 &&
		gang.Held(g.group, g.name, n) == ""
}

// enqueue has the group tried at once, or not at all while it waits for something else. One that was refused is tried
// after its delay: each further Pod would have all of them tried again.
func (gs *gangs) enqueue(g *gangState, now time.Time) {
	switch place, _, _ := g.Place(); {
	case !gs.ready(g):
		gs.queue.Remove(&g.Entry)
	case place == queue.Unschedulable:
		gs.queue.Resume(&g.Entry, now)
	case place != queue.Backoff:
		gs.queue.Add(&g.Entry, now)
	}
}

// shrink looks again at a group that lost something. One that cannot be tried any more leaves the queue, and where it
// lacks Pods, no room is kept for the others, which say so. One that can be tried may have waited for what it lost.
func (gs *gangs) shrink(g *gangState) {
	if gs.ready(g) {
		gs.shrunk = append(gs.shrunk, g)
		return
	}
	gs.queue.Remove(&g.Entry)
	held := gang.Held(g.group, g.name, g.count())
	if held == "" {
		return
	}
	forgetAnswers(g.members())
	for _, p := range gs.withdraw(g) {
		p.last = &Verdict{Pod: p.object, Nodes: gs.state.Nodes(), Group: held}
		gs.decided = append(gs.decided, *p.last)
	}
}

// enqueueShrunk has those groups tried that lost the last Pod whose evictions they waited for.
func (gs *gangs) enqueueShrunk(now time.Time) {
	for _, g := range gs.shrunk {
		if place, _, _ := g.Place(); place == queue.Nowhere {
			gs.enqueue(g, now)
		}
	}
	gs.shrunk = nil
}

// withdraw keeps no room for Pods of the group any more, and returns those for which some was kept.
func (gs *gangs) withdraw(g *gangState) (pods []*pod) {
	for _, p := range g.members() {
		if p.nominated != "" {
			gs.nominations.set(p, "")
			pods = append(pods, p)
		}
	}
	return pods
}

// resume requeues the groups for which a node may have become better, or another Pod may help.
func (gs *gangs) resume(gained bool, now time.Time) {
	for g := range gs.stuck {
		if place, _, _ := g.Place(); place != queue.Unschedulable {
			delete(gs.stuck, g)
			continue
		}
		if gained || slices.ContainsFunc(g.domains, (*class.Class).DomainsChanged) {
			gs.queue.Resume(&g.Entry, now)
		}
	}
}

// resumeNominees requeues a group for whose Pods room is kept: at once when all of them fit there now, as they have
// waited for nothing else. One that still evicts, or about which extenders are asked, is left alone: the outcome has it
// tried. Its last victims are looked for where the last were found.
func (gs *gangs) resumeNominees(g *gangState, now time.Time) {
	if p := g.blocker; p != nil && g.waiting[p.UID] == p && gs.search.blocks(p) && gs.nominations.awaitsVictims(p) {
		return
	}
	members := g.members()
	if slices.ContainsFunc(members, func(p *pod) bool { return !p.waits() }) {
		return
	}
	g.blocker = nil
	for _, p := range slices.Backward(members) {
		if gs.search.blocks(p) {
			g.blocker = p
			break
		}
	}
	switch {
	case g.blocker == nil && gs.search.fitTogether(members):
		gs.queue.Activate(&g.Entry, now)
	case !slices.ContainsFunc(members, gs.nominations.awaitsVictims):
		gs.queue.Resume(&g.Entry, now)
	}
}

// displace takes its nomination from a Pod, which is tried again at once. A group that lacks one of its places has no
// use of the others.
func (gs *gangs) displace(uid types.UID, now time.Time) {
	p := gs.pods[uid]
	if p == nil {
		return
	}
	gs.nominations.set(p, "")
	if p.gang != nil {
		gs.withdraw(p.gang)
		gs.queue.Activate(&p.gang.Entry, now)
		return
	}
	gs.queue.Activate(&p.Entry, now)
}

// requeueNominees requeues the Pods that are nominated for these nodes: those that fit there now whatever their delay,
// as they have waited for nothing else, and those whose victims are gone in vain.
func (gs *gangs) requeueNominees(now time.Time, slots ...columns.Slot) {
	var groups []*gangState
	for _, slot := range slots {
		for _, r := range gs.state.Reservations(slot) {
			p := gs.pods[r.UID]
			switch {
			case p == nil || p.placed():
			case p.gang != nil:
				groups = append(groups, p.gang)
			case gs.nominations.fits(p, slot):
				gs.queue.Activate(&p.Entry, now)
			case !gs.nominations.awaitsVictims(p):
				gs.queue.Resume(&p.Entry, now)
			}
		}
	}
	for i, g := range groups {
		if !slices.Contains(groups[:i], g) {
			gs.resumeNominees(g, now)
		}
	}
}
