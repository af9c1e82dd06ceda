package cycle

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
)

// A Pod whose profile says so may take the room of Pods on other nodes, where these keep it from a node by the counts
// of a domain that both are in. Room is kept for it on its own node alone, so until it has its node no Pod of its
// priority or below comes into these domains that would count there: what its victims leave, their successors do not
// take.

// kept is the reason of a node that no rule speaks against.
const kept = "node(s) are in a domain for which a Pod of no lower priority waits"

// disturbed returns the Pods that the Pod on that node would keep from theirs, and that wait for victims on others.
func (n *nominations) disturbed(p *pod, slot columns.Slot) (uids []types.UID) {
	for uid, other := range n.across {
		if uid == p.UID || other.placed() {
			continue
		}
		of := n.state.ReservedFor(uid)
		if of != columns.None && preempt.Disturbs(n.state, p.object, p.class.Pod.Terms, slot, other.class, of) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// disturbs reports whether one of these comes first.
func (n *nominations) disturbs(p *pod, slot columns.Slot) bool {
	return slices.ContainsFunc(n.disturbed(p, slot),
		func(uid types.UID) bool { return n.across[uid].Priority >= p.Priority })
}

// best returns the best node for the Pod, and how many it must leave to others.
func (n *nominations) best(p *pod) (choice class.Choice, left int, ok bool) {
	choice, ok = p.class.Best(n.state)
	if !ok || len(n.across) == 0 {
		return choice, 0, ok
	}
	takers := n.takers(p)
	if len(takers) == choice.Feasible {
		return choice, 0, true
	}
	left = choice.Feasible - len(takers)
	choice, ok = p.class.BestAmong(n.state, takers, nil)
	return choice, left, ok
}

// takers returns the nodes that can take the Pod and where it disturbs no other Pod.
func (n *nominations) takers(p *pod) []columns.Slot {
	return slices.DeleteFunc(p.class.Takers(n.state), func(slot columns.Slot) bool { return n.disturbs(p, slot) })
}
