package cycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/queue"
)

// A Pod that fits nowhere may take the room of Pods of lower priority. It is nominated for the node: room is kept there
// for it in the columns, so that nobody else of its priority or below is given what its victims leave. It is tried
// again when they are gone, or when another node can take it.

// preemption is what all preemptors have in common.
type preemption struct {
	search  *preempt.Search
	budgets *preempt.Budgets
	units   *preempt.Units
	going   map[types.UID]bool // victims that the API does not show to be leaving yet
	left    []string           // nodes that went since the last requeue
	across  map[types.UID]bool // nominees that may wait for victims on other nodes
}

// nominee is the part of a pod that is about its nomination.
type nominee struct {
	nominated string // the node on which room is kept for it
	shown     string // status.nominatedNodeName of the newest version
}

func newPreemption(state *columns.State) preemption {
	p := preemption{budgets: preempt.NewBudgets(), units: preempt.NewUnits(), going: map[types.UID]bool{},
		across: map[types.UID]bool{}}
	going := p.going
	p.search = preempt.New(state, p.budgets, p.units, func(o *corev1.Pod) bool { return going[o.UID] || preempted(o) })
	return p
}

// preempted reports whether the API shows that the Pod leaves to make room for another.
func preempted(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason == corev1.PodReasonPreemptionByScheduler
	})
}

// SetBudget notes a PodDisruptionBudget that is new or changed.
func (c *Cycle) SetBudget(pdb *policyv1.PodDisruptionBudget) { c.preemption.budgets.Set(pdb) }

// RemoveBudget notes that a PodDisruptionBudget is gone.
func (c *Cycle) RemoveBudget(pdb *policyv1.PodDisruptionBudget) { c.preemption.budgets.Remove(pdb) }

// goes notes that a Pod is about to be evicted.
func (p *preemption) goes(victim *corev1.Pod) {
	p.going[victim.UID] = true
	p.budgets.Disrupt(victim)
	p.units.Touch(victim.UID)
}

// stays notes that a Pod is not evicted after all, or that the API shows it.
func (p *preemption) stays(uid types.UID) {
	delete(p.going, uid)
	p.budgets.Seen(uid)
	p.units.Touch(uid)
}

// watchLeaving notes whether the API shows that a Pod with a node is leaving.
func (c *Cycle) watchLeaving(p *corev1.Pod) {
	if p.DeletionTimestamp == nil {
		return
	}
	c.preemption.stays(p.UID)
	c.state.Note(p.UID, false)
}

// nominate keeps room for the Pod on the node, or none.
func (c *Cycle) nominate(p *pod, node string) {
	if p.nominated = node; p.waits() {
		p.rest()
	}
	delete(c.preemption.across, p.UID)
	if node != "" && p.profile.PreemptsAcross {
		c.preemption.across[p.UID] = true
	}
	c.book.Keep(p.UID, node != "")
	if node == "" {
		c.state.Unreserve(p.UID, !p.placed() || c.state.ReservedFor(p.UID) != c.state.Slot(p.node))
		return
	}
	c.state.Reserve(node, columns.Reservation{UID: p.UID, Pod: p.object, Usage: p.class.Pod.Usage,
		Priority: p.Priority})
}

// followNomination takes over a nomination that another process wrote. What this process decided lately is not undone
// by an old version of the Pod.
func (c *Cycle) followNomination(p *pod, o *corev1.Pod) {
	if now := o.Status.NominatedNodeName; now != p.shown {
		p.shown = now
		if !p.placed() && p.phase != evicting {
			p.nominated = now
		}
	}
}

// takeNomination gives a Pod the node that it is nominated for, if it fits there now and those fit that are nominated
// beside it once the Pods are gone that leave.
func (c *Cycle) takeNomination(p *pod, v *Verdict) bool {
	slot := c.state.ReservedFor(p.UID)
	if slot == columns.None || !c.fitsNominated(p, slot) {
		return false
	}
	v.Node, v.Feasible = c.state.Name(slot), 1
	return true
}

func (c *Cycle) fitsNominated(p *pod, slot columns.Slot) bool {
	if !c.state.Known(slot) {
		return false
	}
	var now, later columns.Trial
	now.Start(c.state, slot)
	later.Start(c.state, slot)
	for _, r := range c.state.Reservations(slot) {
		now.Release(&r)
		if r.UID == p.UID || r.Priority < p.Priority {
			later.Release(&r)
		}
	}
	c.expect(p, &later, slot)
	if p.class.Refuse(c.state, now.Node()) != 0 {
		return false
	}
	for _, o := range c.state.Occupants(slot) {
		if c.leaves(o.Pod) {
			later.Remove(&o)
		}
	}
	return p.class.Refuse(c.state, later.Node()) == 0
}

func (c *Cycle) leaves(p *corev1.Pod) bool { return c.preemption.going[p.UID] || preempted(p) }

// over returns the nodes on which the Pod fits but for what is kept there for Pods of lower priority.
func (c *Cycle) over(p *pod) []columns.Slot {
	return slices.DeleteFunc(c.state.ReservedBelow(p.Priority),
		func(slot columns.Slot) bool { return !c.fitsOver(p, slot) })
}

// outrank gives a Pod that fits nowhere the first of these nodes. The Pods of lower priority for which room is kept
// there look for another.
func (c *Cycle) outrank(p *pod, over []columns.Slot, v *Verdict, now time.Time) bool {
	if len(over) == 0 {
		return false
	}
	best := c.firstByName(over)
	v.Node, v.Feasible = c.state.Name(best), 1
	for _, r := range slices.Clone(c.state.Reservations(best)) {
		if r.Priority < p.Priority {
			c.displace(r.UID, now)
		}
	}
	return true
}

func (c *Cycle) firstByName(slots []columns.Slot) columns.Slot {
	return slices.MinFunc(slots, func(a, b columns.Slot) int {
		return strings.Compare(c.state.Name(a), c.state.Name(b))
	})
}

// fitsOver reports whether the Pod fits on the node without what is kept there for Pods of lower priority.
func (c *Cycle) fitsOver(p *pod, slot columns.Slot) bool {
	if !c.state.Known(slot) {
		return false
	}
	var t columns.Trial
	t.Start(c.state, slot)
	for _, r := range c.state.Reservations(slot) {
		if r.Priority < p.Priority || r.UID == p.UID {
			t.Release(&r)
		}
	}
	c.expect(p, &t, slot)
	return p.class.Refuse(c.state, t.Node()) == 0
}

// displace takes its nomination from a Pod, which is tried again at once. A group that lacks one of its places has no
// use of the others.
func (c *Cycle) displace(uid types.UID, now time.Time) {
	p := c.pods[uid]
	if p == nil {
		return
	}
	c.nominate(p, "")
	if p.gang != nil {
		c.withdraw(p.gang)
		c.queue.Activate(&p.gang.Entry, now)
		return
	}
	c.queue.Activate(&p.Entry, now)
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
	case c.awaitsVictims(p):
		v.Preemption = "not eligible due to a terminating pod on the nominated node."
		return
	}
	if c.consultPlans(p, v) {
		return
	}
	plan, reasons := c.preemption.search.Find(p.preemptor())
	if plan == nil && p.profile.PreemptsAcross {
		plan, v.Untried = c.preemption.search.FindAcross(p.preemptor())
	}
	if plan == nil {
		c.spare(p, v, counted(c.others(p, reasons)))
		return
	}
	c.carryOut(p, v, plan, now)
}

func (p *pod) preemptor() preempt.Preemptor {
	return preempt.Preemptor{UID: p.UID, Class: p.class, Priority: p.Priority}
}

// spare notes why the Pod takes nobody's room.
func (c *Cycle) spare(p *pod, v *Verdict, why []string) {
	v.Preemption, v.Nominated = available(v.Nodes, why), ""
	c.nominate(p, "")
}

// carryOut notes that the Pod takes the room of others.
func (c *Cycle) carryOut(p *pod, v *Verdict, plan *preempt.Plan, now time.Time) {
	for _, uid := range plan.Displaced {
		c.displace(uid, now)
	}
	c.chosen(plan.Victims)
	v.Plan, v.Nominated = plan, c.state.Name(plan.Slot)
	if len(plan.Victims) > 0 {
		p.enter(evicting)
	}
	c.nominate(p, v.Nominated)
}

func counted(reasons []class.Reason) []string {
	parts := make([]string, 0, len(reasons))
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", r.Nodes, r.Text))
	}
	return parts
}

func never(p *corev1.Pod) bool {
	return p.Spec.PreemptionPolicy != nil && *p.Spec.PreemptionPolicy == corev1.PreemptNever
}

// awaitsVictims reports whether Pods of lower priority leave the node that the Pod is nominated for. It takes no more
// room while they do, unless the node is of no use to it any more.
func (c *Cycle) awaitsVictims(p *pod) bool {
	slot := c.state.ReservedFor(p.UID)
	if slot == columns.None || !c.state.Known(slot) {
		return false
	}
	if r := p.class.Refuse(c.state, c.state.Node(slot)); r != 0 && !p.class.Curable(r) {
		return false
	}
	if p.profile.PreemptsAcross && c.preemption.search.AwaitsAcross(p.preemptor(), slot) {
		return true
	}
	return slices.ContainsFunc(c.state.Occupants(slot), func(o columns.Occupant) bool {
		return o.Priority < p.Priority && c.leaves(o.Pod)
	})
}

// Evicted notes what became of the Plan of a Pod: which of its victims were not evicted, and why.
func (c *Cycle) Evicted(uid types.UID, spared []types.UID, err error, now time.Time) {
	for _, victim := range spared {
		c.preemption.stays(victim)
		c.state.Note(victim, false)
	}
	p := c.pods[uid]
	if p == nil || p.phase != evicting {
		return
	}
	p.rest()
	if err != nil {
		c.nominate(p, p.shown)
	}
	if p.gang != nil {
		c.evictedForGang(p, err, now)
		return
	}
	switch {
	case p.phase == gated || !c.leading[p.profile.Name]:
	case p.last == nil || err == nil && p.nominated == "": // changed or displaced meanwhile
		c.queue.Add(&p.Entry, now)
	case err != nil:
		c.queue.Delay(&p.Entry, now)
	default:
		c.setUnschedulable(p, now)
		c.requeueMore(p.class, now)
		if slot := c.state.ReservedFor(uid); slot != columns.None {
			c.requeueNominees(now, slot)
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

// requeueNominees requeues the Pods that are nominated for these nodes: those that fit there now whatever their delay,
// as they have waited for nothing else, and those whose victims are gone in vain.
func (c *Cycle) requeueNominees(now time.Time, slots ...columns.Slot) {
	var groups []*gangState
	for _, slot := range slots {
		for _, r := range c.state.Reservations(slot) {
			p := c.pods[r.UID]
			switch {
			case p == nil || p.placed():
			case p.gang != nil:
				groups = append(groups, p.gang)
			case c.fitsNominated(p, slot):
				c.queue.Activate(&p.Entry, now)
			case !c.awaitsVictims(p):
				c.queue.Resume(&p.Entry, now)
			}
		}
	}
	for i, g := range groups {
		if !slices.Contains(groups[:i], g) {
			c.resumeNominees(g, now)
		}
	}
}

// requeueOfLeft requeues the Pods that are nominated for nodes that are gone.
func (c *Cycle) requeueOfLeft(now time.Time) {
	for _, name := range c.preemption.left {
		slot := c.state.Slot(name)
		if slot == columns.None || c.state.Known(slot) {
			continue
		}
		for _, r := range slices.Clone(c.state.Reservations(slot)) {
			c.displace(r.UID, now)
		}
	}
	c.preemption.left = nil
}

// requeueOver requeues, of each class, the most urgent Pod to which a node that became better may give room that Pods
// of lower priority have, or that is kept for them.
func (c *Cycle) requeueOver(slot columns.Slot, classes map[class.ID]*class.Class, now time.Time) {
	lowest, ok := c.state.LowestPriority()
	for _, r := range c.state.Reservations(slot) {
		lowest, ok = min(lowest, r.Priority), true
	}
	if !ok || !c.state.Known(slot) {
		return
	}
	for id := range classes {
		e := c.queue.MostUrgent(id, func(e *queue.Entry) bool {
			p := c.pods[e.UID]
			return e.Priority > lowest && p.nominated == "" && p.profile.Preempts
		})
		if e == nil {
			continue
		}
		p := c.pods[e.UID]
		asks := p.preemptor()
		if c.fitsOver(p, slot) || !never(p.object) && c.preemption.search.Helps(asks, slot) {
			c.queue.Resume(e, now)
		}
	}
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
