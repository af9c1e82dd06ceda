package cycle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/volumes"
)

// nominations are the nodes on which room is reserved for Pods until their victims leave. A Pod of higher priority
// ignores them.
type nominations struct {
	state   *columns.State
	book    *volumes.Book
	victims *victims
	search  *preempt.Search
	across  map[types.UID]*pod // nominees that may wait for victims on other nodes
}

// nominee is the part of a pod that is about its nomination.
type nominee struct {
	nominated string // the node on which room is kept for it
	shown     string // status.nominatedNodeName of the newest version
}

func newNominations(state *columns.State, book *volumes.Book, victims *victims) *nominations {
	return &nominations{state: state, book: book, victims: victims, across: map[types.UID]*pod{},
		search: preempt.New(state, victims.budgets, victims.units, victims.leave)}
}

// set keeps room for the Pod on the node, or none.
func (n *nominations) set(p *pod, node string) {
	if p.nominated = node; p.waits() {
		p.rest()
	}
	delete(n.across, p.UID)
	if node != "" && p.profile.PreemptsAcross {
		n.across[p.UID] = p
	}
	n.book.Keep(p.UID, node != "")
	if node == "" {
		n.state.Unreserve(p.UID, !p.placed() || n.state.ReservedFor(p.UID) != n.state.Slot(p.node))
		return
	}
	n.state.Reserve(node, columns.Reservation{UID: p.UID, Pod: p.object, Usage: p.class.Pod.Usage,
		Priority: p.Priority})
}

// follow takes over a nomination that another process wrote. What this process decided lately is not undone
// by an old version of the Pod.
func (n *nominations) follow(p *pod, o *corev1.Pod) {
	if now := o.Status.NominatedNodeName; now != p.shown {
		p.shown = now
		if !p.placed() && p.phase != evicting {
			p.nominated = now
		}
	}
}

// take gives a Pod the node that it is nominated for, if it fits there now and those fit that are nominated
// beside it once the Pods are gone that leave.
func (n *nominations) take(p *pod, v *Verdict) bool {
	slot := n.state.ReservedFor(p.UID)
	if slot == columns.None || !n.fits(p, slot) {
		return false
	}
	v.Node, v.Feasible = n.state.Name(slot), 1
	return true
}

// fits reports whether a Pod fits now on the node that it is nominated for, and those beside it once the Pods are
// gone that leave.
func (n *nominations) fits(p *pod, slot columns.Slot) bool {
	if !n.state.Known(slot) {
		return false
	}
	var now, later columns.Trial
	now.Start(n.state, slot)
	later.Start(n.state, slot)
	for _, r := range n.state.Reservations(slot) {
		now.Release(&r)
		if r.UID == p.UID || r.Priority < p.Priority {
			later.Release(&r)
		}
	}
	n.expect(p, &later, slot)
	if p.class.Refuse(n.state, now.Node()) != 0 {
		return false
	}
	for _, o := range n.state.Occupants(slot) {
		if n.victims.leave(o.Pod) {
			later.Remove(&o)
		}
	}
	return p.class.Refuse(n.state, later.Node()) == 0
}

// nodesReservedBelow returns the nodes on which the Pod fits but for what is kept there for Pods of lower priority.
func (n *nominations) nodesReservedBelow(p *pod) []columns.Slot {
	return slices.DeleteFunc(n.state.ReservedBelow(p.Priority),
		func(slot columns.Slot) bool { return !n.fitsAbove(p, slot) })
}

// firstByName returns the node whose name comes first.
func (n *nominations) firstByName(slots []columns.Slot) columns.Slot {
	return slices.MinFunc(slots, func(a, b columns.Slot) int {
		return strings.Compare(n.state.Name(a), n.state.Name(b))
	})
}

// fitsAbove reports whether the Pod fits on the node without what is kept there for Pods of lower priority.
func (n *nominations) fitsAbove(p *pod, slot columns.Slot) bool {
	if !n.state.Known(slot) {
		return false
	}
	var t columns.Trial
	t.Start(n.state, slot)
	for _, r := range n.state.Reservations(slot) {
		if r.Priority < p.Priority || r.UID == p.UID {
			t.Release(&r)
		}
	}
	n.expect(p, &t, slot)
	return p.class.Refuse(n.state, t.Node()) == 0
}

// awaitsVictims reports whether Pods of lower priority leave the node that the Pod is nominated for. It takes no more
// room while they do, unless the node is of no use to it any more.
func (n *nominations) awaitsVictims(p *pod) bool {
	slot := n.state.ReservedFor(p.UID)
	if slot == columns.None || !n.state.Known(slot) {
		return false
	}
	if r := p.class.Refuse(n.state, n.state.Node(slot)); r != 0 && !p.class.Curable(r) {
		return false
	}
	if p.profile.PreemptsAcross && n.search.AwaitsAcross(p.preemptor(), slot) {
		return true
	}
	return slices.ContainsFunc(n.state.Occupants(slot), func(o columns.Occupant) bool {
		return o.Priority < p.Priority && n.victims.leave(o.Pod)
	})
}

// expect has those count on the node that are nominated for it and come before the Pod.
func (n *nominations) expect(p *pod, t *columns.Trial, slot columns.Slot) {
	on := n.state.Reservations(slot)
	for i := range on {
		if on[i].UID != p.UID && on[i].Priority >= p.Priority {
			t.Expect(&on[i])
		}
	}
}
