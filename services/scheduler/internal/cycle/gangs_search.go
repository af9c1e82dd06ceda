package cycle

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/volumes"
)

// gangSearch finds nodes for the Pods of a group, one after the other. It can undo the nodes that it assigned and the
// victims that it removed, without a trace.
type gangSearch struct {
	state          *columns.State
	book           *volumes.Book
	classes        *class.Set
	pods           map[types.UID]*pod
	victims        *victims
	nominations    *nominations
	extenders      *extenders
	classification *classification
	placement      *placement
}

func newGangSearch(l *placement) *gangSearch {
	k, n := l.classification, l.nominations
	return &gangSearch{state: l.state, book: l.book, classes: k.classes, pods: k.pods, victims: n.victims,
		nominations: n, extenders: k.extenders, classification: k, placement: l}
}

// tentative is a Pod of a group with the node that the search assigned to it and may undo.
type tentative struct {
	pod       *pod
	verdict   Verdict
	nominated string    // the node that it was nominated for before
	victims   []removed // that were removed for it
	// displaced are the nominations of Pods of lower priority for its node.
	displaced []nomination
}

// nomination is the node where room is reserved for a Pod.
type nomination struct {
	pod  *pod
	node string
}

// try assigns nodes to as many of the Pods as it can, all of one topology domain if the group requires that. It may say
// why these are not enough. It undoes all other tries.
func (s *gangSearch) try(g *gangState, members []*pod, n gang.Count) (placed []tentative, why string) {
	if g.group.Topology == "" {
		return s.placeEach(g, members, nil), ""
	}
	domains := s.domainsOf(g)
	best, most := "", -1
	for _, value := range slices.Sorted(maps.Keys(domains)) {
		mark := s.state.Gains()
		placed := s.placeEach(g, members, domains[value])
		s.undo(members, placed, mark)
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
	placed = s.placeEach(g, members, domains[best])
	return placed, fmt.Sprintf("%s on nodes of one value of label %s (most with value %s)",
		g.group.TooFew(n, most), g.group.Topology, best)
}

// domainsOf returns the nodes by the value of the group's topology label. If Pods of the group have nodes already, it
// returns only the nodes with the value of these.
func (s *gangSearch) domainsOf(g *gangState) map[string][]columns.Slot {
	domains := s.state.ByLabel(g.group.Topology)
	var taken []string
	note := func(node string) {
		value := ""
		if slot := s.state.Slot(node); slot != columns.None {
			value, _ = s.state.Label(slot, g.group.Topology)
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

// placeEach assigns a node to each of the Pods that fits on one of the nodes, or on any node if they are nil.
func (s *gangSearch) placeEach(g *gangState, members []*pod, among []columns.Slot) (placed []tentative) {
	full := map[*class.Class]bool{} // classes of which no further Pod fits
	for _, p := range members {
		one := s.begin(g, p)
		s.classes.Touch(p.class, s.state)
		if full[p.class] && s.state.ReservedFor(p.UID) == columns.None || !s.findFree(&one, among) {
			full[p.class] = !p.class.LooksAtDomains() && len(p.asks) == 0
			continue
		}
		one.verdict.Steps = s.assignBeside(p, one.verdict.Node)
		placed = append(placed, one)
	}
	return placed
}

// assignBeside assigns a node to a Pod tentatively, so that the rules count its terms for the others of the group.
func (s *gangSearch) assignBeside(p *pod, node string) []volumes.Step {
	steps := s.placement.assign(p, node)
	s.classification.rekey()
	return steps
}

// findFree finds one of the nodes, any if they are nil, that can take the Pod without victims: the one that it is
// nominated for, the best, or one where room is reserved only for Pods of lower priority.
func (s *gangSearch) findFree(one *tentative, among []columns.Slot) bool {
	return s.findNominated(one.pod, &one.verdict, among) || s.findBest(one.pod, &one.verdict, among) ||
		s.findReserved(one, among)
}

// begin returns the result for one Pod before a node is found, beside those of the group that were tried before.
func (s *gangSearch) begin(g *gangState, p *pod) tentative {
	s.classification.renew(p)
	return tentative{pod: p, nominated: p.nominated,
		verdict: Verdict{Pod: p.object, Nodes: s.state.Nodes(), Attempt: g.Attempts + 1, Arrived: g.Arrived()}}
}

func (s *gangSearch) findNominated(p *pod, v *Verdict, among []columns.Slot) bool {
	slot := s.state.ReservedFor(p.UID)
	return (among == nil || slices.Contains(among, slot)) && s.extenders.passes(p, slot) && s.nominations.take(p, v)
}

func (s *gangSearch) findBest(p *pod, v *Verdict, among []columns.Slot) bool {
	defer s.nominations.hold(p)()
	var choice class.Choice
	var ok bool
	switch {
	case len(p.asks) > 0:
		choice, ok = s.extenders.best(p, p.answer, among)
	case among == nil:
		choice, _, ok = s.nominations.best(p)
	default:
		choice, ok = p.class.BestAmong(s.state, among, nil)
	}
	if ok {
		v.Node, v.Score, v.Feasible = s.state.Name(choice.Slot), choice.Score, choice.Feasible
	}
	return ok
}

// findReserved finds the first of the nodes where room is reserved for Pods of lower priority, as outrank does.
func (s *gangSearch) findReserved(one *tentative, among []columns.Slot) bool {
	reserved := slices.DeleteFunc(s.nominations.nodesReservedBelow(one.pod), func(slot columns.Slot) bool {
		return !s.extenders.passes(one.pod, slot) || among != nil && !slices.Contains(among, slot)
	})
	if len(reserved) == 0 {
		return false
	}
	slot := s.nominations.firstByName(reserved)
	one.verdict.Node, one.verdict.Feasible = s.state.Name(slot), 1
	for _, r := range slices.Clone(s.state.Reservations(slot)) {
		if r.Priority < one.pod.Priority {
			s.displace(one, r.UID)
		}
	}
	return true
}

// displace drops the nomination of a Pod tentatively.
func (s *gangSearch) displace(one *tentative, uid types.UID) {
	if p := s.pods[uid]; p != nil {
		one.displaced = append(one.displaced, nomination{pod: p, node: p.nominated})
		s.nominations.set(p, "")
	}
}

// undo unassigns the Pods that were placed since there were so many gains, and restores their victims. All is as it was
// then: no node has gained room, and no Pod has another class.
func (s *gangSearch) undo(members []*pod, placed []tentative, gains int) {
	for _, done := range slices.Backward(placed) {
		s.placement.unassign(done.pod)
		s.nominations.set(done.pod, done.nominated)
		for _, o := range done.victims {
			s.restore(o)
		}
		for _, k := range done.displaced {
			s.nominations.set(k.pod, k.node)
		}
	}
	for _, p := range members {
		s.classification.renew(p)
	}
	s.state.ForgetGains(gains)
}

// refusalsOf says why the first of the Pods without a node fits nowhere.
func (s *gangSearch) refusalsOf(members []*pod) string {
	for _, p := range members {
		if p.placed() {
			continue
		}
		reasons := s.nominations.refusals(p)
		if p.answer != nil && len(p.answer.Left) == 0 {
			reasons = append(reasons, refusedBy(p.answer.Failed)...)
		}
		if reasons != nil {
			v := Verdict{Pod: p.object, Nodes: s.state.Nodes(), Reasons: reasons}
			return v.Message()
		} // one alone would fit
	}
	return ""
}

// blocks reports whether the Pod keeps its group from the nodes that are reserved for it, whatever the others do.
func (s *gangSearch) blocks(p *pod) bool {
	slot := s.state.ReservedFor(p.UID)
	return slot == columns.None || !p.class.LooksAtDomains() && !s.nominations.fits(p, slot)
}

// fitTogether reports whether all of these Pods, each of which waits, fit now where room is reserved for them. It
// leaves no trace.
func (s *gangSearch) fitTogether(members []*pod) bool {
	mark := s.state.Gains()
	var placed []tentative
	for _, p := range members {
		one := tentative{pod: p, nominated: p.nominated}
		if !s.nominations.take(p, &one.verdict) {
			break
		}
		s.assignBeside(p, one.verdict.Node)
		placed = append(placed, one)
	}
	s.undo(members, placed, mark)
	return len(placed) == len(members)
}

// removed is a victim that is tentatively removed from its node.
type removed struct {
	columns.Occupant
	node string
}

// remove removes a victim from its node, until restore.
func (s *gangSearch) remove(victim *corev1.Pod) (removed, bool) {
	node, _ := s.state.PodNode(victim.UID)
	on := s.state.Occupants(s.state.Slot(node))
	i := slices.IndexFunc(on, func(o columns.Occupant) bool { return o.Pod.UID == victim.UID })
	if i < 0 {
		return removed{}, false
	}
	out := removed{Occupant: on[i], node: node}
	s.state.RemovePod(victim.UID)
	s.victims.budgets.Disrupt(victim)
	s.book.Wait(victim)
	s.book.Moved(s.state)
	return out, true
}

// restore puts the victim back on its node.
func (s *gangSearch) restore(o removed) {
	s.state.SetPod(o.Pod, o.node, o.Usage)
	s.victims.budgets.Seen(o.Pod.UID)
	s.book.Use(o.Pod, o.node)
	s.book.Moved(s.state)
}
