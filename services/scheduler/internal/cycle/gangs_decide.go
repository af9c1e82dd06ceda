package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/volumes"
)

// given is a Pod of a group that was given a node, which may be taken back.
type given struct {
	pod       *pod
	verdict   Verdict
	nominated string // where room was kept for it before
	victims   []gone // who was taken away for it
	// displaced are those who come after it and for whom room was kept on its node.
	displaced []seat
}

// seat is where room is kept for a Pod.
type seat struct {
	pod  *pod
	node string
}

// decideGang decides for all Pods of a group that have no node: enough of them get one, or none does.
func (c *Cycle) decideGang(g *gangState, now time.Time) {
	if !c.ready(g) {
		return // it is told when it is
	}
	members, n := g.members(), g.count()
	for _, p := range members {
		c.heed(p)
	}
	if c.consultGang(g, members, now) {
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
		c.refuseGang(g, members, why, now)
		return
	}
	mark := c.state.Gains()
	placed, why := c.tryGang(g, members, n)
	if g.group.Enough(n, len(placed)) {
		c.placeGang(g, members, placed, now)
		return
	}
	if why == "" {
		why = g.group.TooFew(n, len(placed))
	}
	if refusals := c.refusalsOf(members); refusals != "" {
		why += ": " + refusals
	}
	c.undo(members, placed, mark)
	plans, said := c.preemptForGang(g, members)
	if said != "" {
		why += " preemption: " + said
	}
	if len(plans) > 0 {
		why = g.group.TooFew(n, len(placed)) + fmt.Sprintf(", room is made for %d", len(plans))
	}
	for i := range plans {
		c.makeWay(&plans[i], why, now)
	}
	c.refuseGang(g, members, why, now)
}

// tryGang gives nodes to as many of the Pods as it can, all of one topology domain if the group asks for that, and may
// say why these are not enough. Nothing is kept of other tries.
func (c *Cycle) tryGang(g *gangState, members []*pod, n gang.Count) (placed []given, why string) {
	if g.group.Topology == "" {
		return c.give(g, members, nil), ""
	}
	domains := c.domainsOf(g)
	best, most := "", -1
	for _, value := range slices.Sorted(maps.Keys(domains)) {
		mark := c.state.Gains()
		placed := c.give(g, members, domains[value])
		c.undo(members, placed, mark)
		if len(placed) > most {
			best, most = value, len(placed)
		}
		if most == len(members) {
			break
		}
	}
	if most <= 0 {
		return nil, fmt.Sprintf("no node of one value of label %s can take a pod of pod group %s", g.group.Topology,
			g.name.Name)
	}
	placed = c.give(g, members, domains[best])
	return placed, fmt.Sprintf("%s on nodes of one value of label %s (most with value %s)",
		g.group.TooFew(n, most), g.group.Topology, best)
}

// domainsOf returns the nodes by the value of the label that the group is to agree on: only those of the value that
// Pods of the group are on already, if there are any.
func (c *Cycle) domainsOf(g *gangState) map[string][]columns.Slot {
	domains := c.state.ByLabel(g.group.Topology)
	var taken []string
	note := func(node string) {
		value := ""
		if slot := c.state.Slot(node); slot != columns.None {
			value, _ = c.state.Label(slot, g.group.Topology)
		}
		taken = append(taken, value)
	}
	for _, p := range g.placed {
		note(p.Spec.NodeName)
	}
	for _, p := range g.waiting {
		if p.placed() {
			note(p.node)
		}
	}
	if len(taken) > 0 {
		keep := slices.Min(taken)
		maps.DeleteFunc(domains, func(value string, _ []columns.Slot) bool { return value != keep })
	}
	return domains
}

// give gives a node to each of the Pods that fits on one of the nodes, on any if they are nil.
func (c *Cycle) give(g *gangState, members []*pod, among []columns.Slot) (placed []given) {
	full := map[*class.Class]bool{} // no further Pod of them fits
	for _, p := range members {
		one := c.turn(g, p)
		c.classes.Touch(p.class, c.state)
		if full[p.class] && c.state.ReservedFor(p.UID) == columns.None || !c.giveFree(&one, among) {
			full[p.class] = !p.class.LooksAtDomains() && len(p.asks) == 0
			continue
		}
		one.verdict.Steps = c.assignBeside(p, one.verdict.Node)
		placed = append(placed, one)
	}
	return placed
}

// assignBeside gives a Pod its node for now, so that the others of the group heed what it carries.
func (c *Cycle) assignBeside(p *pod, node string) []volumes.Step {
	steps := c.assign(p, node)
	c.rekey()
	return steps
}

// giveFree finds one of the nodes, any if they are nil, that can take the Pod though nobody leaves: the one that it is
// nominated for, the best, or one where room is kept only for Pods that come after it.
func (c *Cycle) giveFree(one *given, among []columns.Slot) bool {
	return c.giveNominated(one.pod, &one.verdict, among) || c.giveBest(one.pod, &one.verdict, among) ||
		c.giveKept(one, among)
}

// turn begins the outcome of the try of one Pod beside those of the group that were tried before.
func (c *Cycle) turn(g *gangState, p *pod) given {
	c.renew(p)
	return given{pod: p, nominated: p.nominated,
		verdict: Verdict{Pod: p.object, Nodes: c.state.Nodes(), Attempt: g.Attempts + 1, Arrived: g.Arrived()}}
}

// renew finds the class of a Pod with volumes anew, as others may have been promised what it would get, and that of one
// that has terms of others to heed.
func (c *Cycle) renew(p *pod) {
	if p.class.Pod.Volumes != nil {
		c.classify(p, p.object)
	}
	c.heed(p)
}

func (c *Cycle) giveNominated(p *pod, v *Verdict, among []columns.Slot) bool {
	slot := c.state.ReservedFor(p.UID)
	return (among == nil || slices.Contains(among, slot)) && c.extenders.passes(p, slot) && c.nominations.take(p, v)
}

func (c *Cycle) giveBest(p *pod, v *Verdict, among []columns.Slot) bool {
	defer c.nominations.hold(p)()
	var choice class.Choice
	var ok bool
	switch {
	case len(p.asks) > 0:
		choice, ok = c.extenders.best(p, p.answer, among)
	case among == nil:
		choice, _, ok = c.nominations.best(p)
	default:
		choice, ok = p.class.BestAmong(c.state, among, nil)
	}
	if ok {
		v.Node, v.Score, v.Feasible = c.state.Name(choice.Slot), choice.Score, choice.Feasible
	}
	return ok
}

// giveKept gives the Pod the first of the nodes where room is kept for Pods of lower priority, as outrank does.
func (c *Cycle) giveKept(one *given, among []columns.Slot) bool {
	reserved := slices.DeleteFunc(c.nominations.nodesReservedBelow(one.pod), func(slot columns.Slot) bool {
		return !c.extenders.passes(one.pod, slot) || among != nil && !slices.Contains(among, slot)
	})
	if len(reserved) == 0 {
		return false
	}
	slot := c.nominations.firstByName(reserved)
	one.verdict.Node, one.verdict.Feasible = c.state.Name(slot), 1
	for _, r := range slices.Clone(c.state.Reservations(slot)) {
		if r.Priority < one.pod.Priority {
			c.unseat(one, r.UID)
		}
	}
	return true
}

// unseat keeps no room for a Pod for now.
func (c *Cycle) unseat(one *given, uid types.UID) {
	if p := c.pods[uid]; p != nil {
		one.displaced = append(one.displaced, seat{pod: p, node: p.nominated})
		c.nominations.set(p, "")
	}
}

// undo takes their nodes from those of the Pods that were given some since there were so many gains, and brings back
// the victims. All is as it was then: no node is better, and no Pod of another class.
func (c *Cycle) undo(members []*pod, placed []given, gains int) {
	for _, done := range slices.Backward(placed) {
		c.giveUp(done.pod)
		c.nominations.set(done.pod, done.nominated)
		for _, o := range done.victims {
			c.bringBack(o)
		}
		for _, k := range done.displaced {
			c.nominations.set(k.pod, k.node)
		}
	}
	for _, p := range members {
		c.renew(p)
	}
	c.state.ForgetGains(gains)
}

// placeGang keeps the nodes that were given. The other Pods wait until there is room for them too.
func (c *Cycle) placeGang(g *gangState, members []*pod, placed []given, now time.Time) {
	g.refused = ""
	for _, done := range placed {
		for _, k := range done.displaced {
			c.displace(k.pod.UID, now)
		}
		v := done.verdict
		done.pod.last = &v
		g.unit.Add(done.pod.UID)
		c.gangs.decided = append(c.gangs.decided, v)
		c.unschedulable.requeueMore(done.pod.class, now)
	}
	members = slices.DeleteFunc(slices.Clone(members), (*pod).placed)
	if len(members) > 0 {
		c.refuseGang(g, members, cmp.Or(c.refusalsOf(members), fmt.Sprintf(
			"there is no room beside the other pods of pod group %s", g.name.Name)), now)
		g.refused = "" // the group is scheduled
	}
}

// refuseGang says of each Pod that it has no node, and has the group tried again when there may be room.
func (c *Cycle) refuseGang(g *gangState, members []*pod, why string, now time.Time) {
	g.refused, g.domains = why, nil
	for _, p := range members {
		v := Verdict{Pod: p.object, Nodes: c.state.Nodes(), Attempt: g.Attempts + 1, Arrived: g.Arrived(), Group: why}
		if p.last != nil && p.last.Plan != nil && p.phase == evicting {
			v.Plan = p.last.Plan
		}
		if v.Nominated = p.nominated; p.unanswerable() {
			v.Failure = why
		}
		p.last = &v
		c.gangs.decided = append(c.gangs.decided, v)
		if p.class.LooksAtDomains() && !slices.Contains(g.domains, p.class) {
			p.class.DomainsChanged() // from here on
			g.domains = append(g.domains, p.class)
		}
	}
	if refusedByExtenders(members) {
		c.queue.Delay(&g.Entry, now)
	} else {
		c.queue.AddUnschedulable(&g.Entry, now)
	}
	c.gangs.stuck[g], c.gangs.spoken[g] = true, true
}

// refusalsOf says why the first of the Pods that were given no node fits nowhere.
func (c *Cycle) refusalsOf(members []*pod) string {
	for _, p := range members {
		if p.placed() {
			continue
		}
		reasons := c.nominations.refusals(p)
		if p.answer != nil && len(p.answer.Left) == 0 {
			reasons = append(reasons, refusedBy(p.answer.Failed)...)
		}
		if reasons != nil {
			v := Verdict{Pod: p.object, Nodes: c.state.Nodes(), Reasons: reasons}
			return v.Message()
		} // one alone would fit
	}
	return ""
}
