package cycle

import (
	"slices"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
)

// Pods that are nominated for a node count in no domain. A Pod of no higher priority goes to such a node only if it
// fits there with them and without them, as they may never come.

// holdNominees has the nodes refuse the Pod where it would not fit beside the Pods that are nominated for them, until
// the returned function is called.
func (c *Cycle) holdNominees(p *pod) func() {
	held := c.heldFrom(p)
	if len(held) == 0 {
		return func() {}
	}
	p.class.Hold(c.state, held)
	of := p.class
	return func() { of.Hold(c.state, nil) }
}

func (c *Cycle) heldFrom(p *pod) map[columns.Slot]class.Refusal {
	if !p.class.LooksAtDomains() {
		return nil
	}
	var awaited []columns.Slot
	for _, counts := range p.class.FilterDomains(c.state) {
		awaited = slices.AppendSeq(awaited, c.state.Awaited(counts.Term))
	}
	if len(awaited) == 0 || p.class.Feasible(c.state) == 0 {
		return nil // or it fits nowhere as it is
	}
	slices.Sort(awaited)
	held := map[columns.Slot]class.Refusal{}
	var t columns.Trial
	for _, slot := range slices.Compact(awaited) {
		if !c.state.Known(slot) || p.class.Refuses(c.state, slot) {
			continue
		}
		t.Start(c.state, slot)
		if c.expect(p, &t, slot); t.Node().Expects() {
			if r := p.class.Refuse(c.state, t.Node()); r != 0 {
				held[slot] = r
			}
		}
	}
	return held
}

// refusals returns why no node can take the Pod; nothing where one can.
func (c *Cycle) refusals(p *pod) []class.Reason {
	defer c.holdNominees(p)()
	if p.class.Feasible(c.state) > 0 {
		return nil
	}
	return p.class.Refusals(c.state)
}

// expect has those count on the node that are nominated for it and come before the Pod.
func (c *Cycle) expect(p *pod, t *columns.Trial, slot columns.Slot) {
	on := c.state.Reservations(slot)
	for i := range on {
		if on[i].UID != p.UID && on[i].Priority >= p.Priority {
			t.Expect(&on[i])
		}
	}
}
