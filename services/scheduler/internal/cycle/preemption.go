package cycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
)

// A Pod that fits nowhere may preempt Pods of lower priority. It is nominated for the node: the columns reserve room
// there for it, so that no other Pod of its priority or below gets the room of its victims. It is tried again when they
// are gone, or when another node can take it.

// SetBudget notes a PodDisruptionBudget that is new or changed.
func (c *Cycle) SetBudget(pdb *policyv1.PodDisruptionBudget) { c.victims.budgets.Set(pdb) }

// RemoveBudget notes that a PodDisruptionBudget is gone.
func (c *Cycle) RemoveBudget(pdb *policyv1.PodDisruptionBudget) { c.victims.budgets.Remove(pdb) }

// outrank gives a Pod that fits nowhere the first of these nodes. The Pods of lower priority for which room is kept
// there look for another.
func (c *Cycle) outrank(p *pod, reserved []columns.Slot, v *Verdict, now time.Time) bool {
	if len(reserved) == 0 {
		return false
	}
	best := c.nominations.firstByName(reserved)
	v.Node, v.Feasible = c.state.Name(best), 1
	for _, r := range slices.Clone(c.state.Reservations(best)) {
		if r.Priority < p.Priority {
			c.gangs.displace(r.UID, now)
		}
	}
	return true
}

// displaceAcross has Pods look for another node that a Pod of higher priority keeps from theirs.
func (c *Cycle) displaceAcross(p *pod, now time.Time) {
	if len(c.nominations.across) == 0 {
		return
	}
	for _, uid := range c.nominations.disturbed(p, c.state.Slot(p.node)) {
		c.gangs.displace(uid, now)
	}
}

// preempt looks for a node where the Pod fits once Pods of lower priority are gone, and nominates it.
func (c *Cycle) preempt(p *pod, v *Verdict, now time.Time) {
	v.Nominated = p.nominated
	switch {
	case !p.profile.Preempts || v.Nodes == 0:
		return
	case never(p.object):
		v.Preemption = "not eligible due to preemptionPolicy=Never."
		return
	case c.nominations.awaitsVictims(p):
		v.Preemption = "not eligible due to a terminating pod on the nominated node."
		return
	}
	if c.extenders.consultPlans(p, v) {
		return
	}
	plan, reasons := c.nominations.search.Find(p.preemptor())
	if plan == nil && p.profile.PreemptsAcross {
		plan, v.Untried = c.nominations.search.FindAcross(p.preemptor())
	}
	if plan == nil {
		c.recordNoVictims(p, v, counted(c.extenders.others(p, reasons)))
		return
	}
	c.carryOut(p, v, plan, now)
}

// recordNoVictims notes why the Pod preempts no other Pod.
func (c *Cycle) recordNoVictims(p *pod, v *Verdict, why []string) {
	v.Preemption, v.Nominated = available(v.Nodes, why), ""
	c.nominations.set(p, "")
}

// carryOut notes that the Pod takes the room of others.
func (c *Cycle) carryOut(p *pod, v *Verdict, plan *preempt.Plan, now time.Time) {
	for _, uid := range plan.Displaced {
		c.gangs.displace(uid, now)
	}
	c.gangs.choose(plan.Victims)
	v.Plan, v.Nominated = plan, c.state.Name(plan.Slot)
	if len(plan.Victims) > 0 {
		p.enter(evicting)
	}
	c.nominations.set(p, v.Nominated)
}

func counted(reasons []class.Reason) []string {
	parts := make([]string, 0, len(reasons))
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", r.Nodes, r.Text))
	}
	return parts
}

// Evicted notes what became of the Plan of a Pod: which of its victims were not evicted, and why.
func (c *Cycle) Evicted(uid types.UID, spared []types.UID, err error, now time.Time) {
	for _, victim := range spared {
		c.victims.spare(victim)
	}
	p := c.pods[uid]
	if p == nil || p.phase != evicting {
		return
	}
	p.rest()
	if err != nil {
		c.nominations.set(p, p.shown)
	}
	if p.gang != nil {
		c.gangs.evicted(p, err, now)
		return
	}
	switch {
	case p.phase == gated || !c.leading[p.profile.Name]:
	case p.last == nil || err == nil && p.nominated == "": // changed or displaced meanwhile
		c.queue.Add(&p.Entry, now)
	case err != nil:
		c.queue.Delay(&p.Entry, now)
	default:
		c.unschedulable.put(p, now)
		c.unschedulable.requeueMore(p.class, now)
		if slot := c.state.ReservedFor(uid); slot != columns.None {
			c.gangs.requeueNominees(now, slot)
		}
	}
}

// Nominated returns the node on which room is kept for a Pod without a node.
func (c *Cycle) Nominated(uid types.UID) string {
	if p := c.pods[uid]; p != nil {
		return p.nominated
	}
	return ""
}

// explainPreemption says what the last try found out about the room of others.
func explainPreemption(v *Verdict) []Fact {
	if v == nil || v.Plan == nil {
		return nil
	}
	names := make([]string, 0, len(v.Plan.Victims))
	for _, p := range v.Plan.Victims {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	text := fmt.Sprintf("node %s has room once Pods that leave it already are gone", v.Nominated)
	if len(names) > 0 {
		text = fmt.Sprintf("takes the room of %s on node %s", strings.Join(names, ", "), v.Nominated)
	}
	return []Fact{{Reason: "Preemption", Message: text}}
}
