package cycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// decide decides for all Pods of a group that have no node: enough of them get one, or none does.
func (gs *gangs) decide(g *gangState, now time.Time) {
	if !gs.ready(g) {
		return // it is enqueued when it is
	}
	members, n := g.members(), g.count()
	for _, p := range members {
		gs.classification.heed(p)
	}
	if gs.consult(g, members, now) {
		return
	}
	defer forgetAnswers(members)
	objects := make([]*corev1.Pod, 0, len(members))
	for _, p := range members {
		objects = append(objects, p.object)
	}
	why := g.group.Disagree(objects)
	if i := slices.IndexFunc(members, (*pod).unanswerable); i >= 0 {
		why = members[i].answer.Err.Error()
	}
	if why != "" {
		gs.refuse(g, members, why, now)
		return
	}
	mark := gs.state.Gains()
	placed, why := gs.search.try(g, members, n)
	if g.group.Enough(n, len(placed)) {
		gs.place(g, members, placed, now)
		return
	}
	if why == "" {
		why = g.group.TooFew(n, len(placed))
	}
	if refusals := gs.search.refusalsOf(members); refusals != "" {
		why += ": " + refusals
	}
	gs.search.undo(members, placed, mark)
	plans, said := gs.search.preempt(g, members)
	if said != "" {
		why += " preemption: " + said
	}
	if len(plans) > 0 {
		why = g.group.TooFew(n, len(placed)) + fmt.Sprintf(", room is made for %d", len(plans))
	}
	for i := range plans {
		gs.makeWay(&plans[i], why, now)
	}
	gs.refuse(g, members, why, now)
}

// place keeps the nodes that the search assigned. The other Pods wait until there is room for them too.
func (gs *gangs) place(g *gangState, members []*pod, placed []tentative, now time.Time) {
	g.refused = ""
	for _, done := range placed {
		for _, k := range done.displaced {
			gs.displace(k.pod.UID, now)
		}
		v := done.verdict
		done.pod.last = &v
		g.unit.Add(done.pod.UID)
		gs.decided = append(gs.decided, v)
		gs.unschedulable.requeueMore(done.pod.class, now)
	}
	members = slices.DeleteFunc(slices.Clone(members), (*pod).placed)
	if len(members) > 0 {
		gs.refuse(g, members, cmp.Or(gs.search.refusalsOf(members), fmt.Sprintf(
			"there is no room beside the other pods of pod group %s", g.name.Name)), now)
		g.refused = "" // the group is scheduled
	}
}

// refuse decides that none of the Pods gets a node, and has the group tried again when there may be room.
func (gs *gangs) refuse(g *gangState, members []*pod, why string, now time.Time) {
	g.refused, g.domains = why, nil
	for _, p := range members {
		v := Verdict{Pod: p.object, Nodes: gs.state.Nodes(), Attempt: g.Attempts + 1, Arrived: g.Arrived(), Group: why}
		if p.last != nil && p.last.Plan != nil && p.phase == evicting {
			v.Plan = p.last.Plan
		}
		if v.Nominated = p.nominated; p.unanswerable() {
			v.Failure = why
		}
		p.last = &v
		gs.decided = append(gs.decided, v)
		if p.class.LooksAtDomains() && !slices.Contains(g.domains, p.class) {
			p.class.DomainsChanged() // from here on
			g.domains = append(g.domains, p.class)
		}
	}
	if refusedByExtenders(members) {
		gs.queue.Delay(&g.Entry, now)
	} else {
		gs.queue.AddUnschedulable(&g.Entry, now)
	}
	gs.stuck[g], gs.unreported[g] = true, true
}

// makeWay nominates a Pod for its node, and has its victims evicted.
func (gs *gangs) makeWay(r *room, why string, now time.Time) {
	p := r.pod
	for _, k := range r.displaced {
		gs.displace(k.pod.UID, now)
	}
	gs.choose(r.plan.Victims)
	v := Verdict{Pod: p.object, Nodes: gs.state.Nodes(), Group: why, Plan: &r.plan, Nominated: r.verdict.Node}
	p.last = &v
	if len(r.plan.Victims) > 0 {
		p.enter(evicting)
	}
	gs.nominations.set(p, r.verdict.Node)
}

// choose notes that Pods are about to be evicted.
func (gs *gangs) choose(victims []*corev1.Pod) {
	for _, victim := range victims {
		gs.victims.choose(victim)
		if g := gs.goesWith(victim.UID); g != nil {
			g.evicted = victim
			gs.unreported[g] = true
		}
	}
}

// goesWith returns the group that is evicted together with the Pod; nil when the Pod is evicted alone.
func (gs *gangs) goesWith(uid types.UID) *gangState {
	g := gs.of[uid]
	if p := gs.pods[uid]; g == nil && p != nil {
		g = p.gang
	}
	if g == nil || g.unit == nil {
		return nil
	}
	return g
}

// evicted notes what became of the victims of a Pod of a group.
func (gs *gangs) evicted(p *pod, err error, now time.Time) {
	g := p.gang
	switch {
	case !gs.ready(g): // others still evict, or it waits for something else
	case err == nil && !slices.ContainsFunc(g.members(), func(p *pod) bool { return p.nominated != "" }):
		gs.queue.Add(&g.Entry, now) // displaced meanwhile
	case err != nil:
		gs.queue.Delay(&g.Entry, now)
	default:
		gs.queue.AddUnschedulable(&g.Entry, now)
		gs.resumeNominees(g, now)
	}
}

// nextDecided returns the next verdict on a Pod of a group, and skips those that a change has overtaken.
func (gs *gangs) nextDecided() (Verdict, bool) {
	for len(gs.decided) > 0 {
		v := gs.decided[0]
		gs.decided = gs.decided[1:]
		if p := gs.pods[v.Pod.UID]; p != nil && p.node == v.Node && p.phase != gated {
			return v, true
		}
		gs.overtaken(&v)
	}
	gs.decided = nil
	return Verdict{}, false
}

// overtaken spares the victims of a verdict that is not carried out.
func (gs *gangs) overtaken(v *Verdict) {
	if v.Plan == nil {
		return
	}
	for _, victim := range v.Plan.Victims {
		gs.victims.spare(victim.UID)
	}
}

// lead follows the lead of a profile. It takes back the verdicts that nextDecided has not returned yet.
func (gs *gangs) lead(profile string, now time.Time) {
	gs.decided = slices.DeleteFunc(gs.decided, func(v Verdict) bool {
		p := gs.pods[v.Pod.UID]
		if p == nil || p.profile.Name != profile {
			return false
		}
		if v.Node != "" && p.node == v.Node {
			gs.placement.unassign(p)
		}
		gs.overtaken(&v)
		if p.phase == evicting && v.Plan != nil {
			p.rest()
		}
		return true
	})
	for _, g := range gs.byUID {
		if g.profile != nil && g.profile.Name == profile {
			gs.unreported[g] = true
			forgetAnswers(g.members())
			gs.enqueue(g, now)
		}
	}
}
