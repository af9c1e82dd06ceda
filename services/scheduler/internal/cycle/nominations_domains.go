package cycle

import (
	"slices"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
)

// Pods that are nominated for a node count in no domain. A Pod of no higher priority goes to such a node only if it
// fits there with them and without them, as they may never come.

// hold has the nodes refuse the Pod where it would not fit beside the Pods that are nominated for them, until
// the returned function is called.
func (n *nominations) hold(p *pod) func() {
	held := n.heldFrom(p)
	if len(held) == 0 {
		return func() {}
	}
	p.class.Hold(n.state, held)
	of := p.class
	return func() { of.Hold(n.state, nil) }
}

func (n *nominations) heldFrom(p *pod) map[columns.Slot]class.Refusal {
	if !p.class.LooksAtDomains() {
		return nil
	}
	var awaited []columns.Slot
	for _, counts := range p.class.FilterDomains(n.state) {
		awaited = slices.AppendSeq(awaited, n.state.Awaited(counts.Term))
	}
	if len(awaited) == 0 || p.class.Feasible(n.state) == 0 {
		return nil // or it fits nowhere as it is
	}
	slices.Sort(awaited)
	held := map[columns.Slot]class.Refusal{}
	var t columns.Trial
	for _, slot := range slices.Compact(awaited) {
		if !n.state.Known(slot) || p.class.Refuses(n.state, slot) {
			continue
		}
		t.Start(n.state, slot)
		if n.expect(p, &t, slot); t.Node().Expects() {
			if r := p.class.Refuse(n.state, t.Node()); r != 0 {
				held[slot] = r
			}
		}
	}
	return held
}

// refusals returns why no node can take the Pod; nothing where one can.
func (n *nominations) refusals(p *pod) []class.Reason {
	defer n.hold(p)()
	if p.class.Feasible(n.state) > 0 {
		return nil
	}
	return p.class.Refusals(n.state)
}
