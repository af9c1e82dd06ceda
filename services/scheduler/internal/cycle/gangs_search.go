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

// gangSearch finds nodes for the Pods of a group, one beside the other. What it gives them, and whom it takes away for
// them, it can undo as if nothing had been.
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

// try gives nodes to as many of the Pods as it can, all of one topology domain if the group asks for that, and may
// say why these are not enough. Nothing is kept of other tries.
func (s *gangSearch) try(g *gangState, members []*pod, n gang.Count) (placed []given, why string) {
	if g.group.Topology == "" {
		return s.give(g, members, nil), ""
	}
	domains := s.domainsOf(g)
	best, most := "", -1
	for _, value := range slices.Sorted(maps.Keys(domains)) {
		mark := s.state.Gains()
		placed := s.give(g, members, domains[value])
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
	placed = s.give(g, members, domains[best])
	return placed, fmt.Sprintf("%s on nodes of one value of label %s (most with value %s)",
		g.group.TooFew(n, most), g.group.Topology, best)
}

// domainsOf returns the nodes by the value of the label that the group is to agree on: only those of the value that
// Pods of the group are on already, if there are any.
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

// give gives a node to each of the Pods that fits on one of the nodes, on any if they are nil.
func (s *gangSearch) give(g *gangState, members []*pod, among []columns.Slot) (placed []given) {
	full := map[*class.Class]bool{} // no further Pod of them fits
	for _, p := range members {
		one := s.turn(g, p)
		s.classes.Touch(p.class, s.state)
		if full[p.class] && s.state.ReservedFor(p.UID) == columns.None || !s.giveFree(&one, among) {
			full[p.class] = !p.class.LooksAtDomains() && len(p.asks) == 0
			continue
		}
		one.verdict.Steps = s.assignBeside(p, one.verdict.Node)
		placed = append(placed, one)
	}
	return placed
}

// assignBeside gives a Pod its node for now, so that the others of the group heed what it carries.
func (s *gangSearch) assignBeside(p *pod, node string) []volumes.Step {
	steps := s.placement.assign(p, node)
	s.classification.rekey()
	return steps
}

// giveFree finds one of the nodes, any if they are nil, that can take the Pod though nobody leaves: the one that it is
// nominated for, the best, or one where room is kept only for Pods that come after it.
func (s *gangSearch) giveFree(one *given, among []columns.Slot) bool {
	return s.giveNominated(one.pod, &one.verdict, among) || s.giveBest(one.pod, &one.verdict, among) ||
		s.giveKept(one, among)
}

// turn begins the outcome of the try of one Pod beside those of the group that were tried before.
func (s *gangSearch) turn(g *gangState, p *pod) given {
	s.classification.renew(p)
	return given{pod: p, nominated: p.nominated,
		verdict: Verdict{Pod: p.object, Nodes: s.state.Nodes(), Attempt: g.Attempts + 1, Arrived: g.Arrived()}}
}

func (s *gangSearch) giveNominated(p *pod, v *Verdict, among []columns.Slot) bool {
	slot := s.state.ReservedFor(p.UID)
	return (among == nil || slices.Contains(among, slot)) && s.extenders.passes(p, slot) && s.nominations.take(p, v)
}

func (s *gangSearch) giveBest(p *pod, v *Verdict, among []columns.Slot) bool {
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

// giveKept gives the Pod the first of the nodes where room is kept for Pods of lower priority, as outrank does.
func (s *gangSearch) giveKept(one *given, among []columns.Slot) bool {
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
			s.unseat(one, r.UID)
		}
	}
	return true
}

// unseat keeps no room for a Pod for now.
func (s *gangSearch) unseat(one *given, uid types.UID) {
	if p := s.pods[uid]; p != nil {
		one.displaced = append(one.displaced, seat{pod: p, node: p.nominated})
		s.nominations.set(p, "")
	}
}

// undo takes their nodes from those of the Pods that were given some since there were so many gains, and brings back
// the victims. All is as it was then: no node is better, and no Pod of another class.
func (s *gangSearch) undo(members []*pod, placed []given, gains int) {
	for _, done := range slices.Backward(placed) {
		s.placement.giveUp(done.pod)
		s.nominations.set(done.pod, done.nominated)
		for _, o := range done.victims {
			s.bringBack(o)
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

// refusalsOf says why the first of the Pods that were given no node fits nowhere.
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

// blocks reports whether the Pod keeps its group from the places that are kept for it, whatever the others do.
func (s *gangSearch) blocks(p *pod) bool {
	slot := s.state.ReservedFor(p.UID)
	return slot == columns.None || !p.class.LooksAtDomains() && !s.nominations.fits(p, slot)
}

// fitTogether reports whether all of these Pods, each of which waits, fit now where room is kept for them. It leaves no
// trace.
func (s *gangSearch) fitTogether(members []*pod) bool {
	mark := s.state.Gains()
	var placed []given
	for _, p := range members {
		one := given{pod: p, nominated: p.nominated}
		if !s.nominations.take(p, &one.verdict) {
			break
		}
		s.assignBeside(p, one.verdict.Node)
		placed = append(placed, one)
	}
	s.undo(members, placed, mark)
	return len(placed) == len(members)
}

// gone is a Pod that was taken away from its node for now.
type gone struct {
	columns.Occupant
	node string
}

// takeAway has a Pod be gone, until bringBack.
func (s *gangSearch) takeAway(victim *corev1.Pod) (gone, bool) {
	node, _ := s.state.PodNode(victim.UID)
	on := s.state.Occupants(s.state.Slot(node))
	i := slices.IndexFunc(on, func(o columns.Occupant) bool { return o.Pod.UID == victim.UID })
	if i < 0 {
		return gone{}, false
	}
	out := gone{Occupant: on[i], node: node}
	s.state.RemovePod(victim.UID)
	s.victims.budgets.Disrupt(victim)
	s.book.Wait(victim)
	s.book.Moved(s.state)
	return out, true
}

// bringBack has it be where it was.
func (s *gangSearch) bringBack(o gone) {
	s.state.SetPod(o.Pod, o.node, o.Usage)
	s.victims.budgets.Seen(o.Pod.UID)
	s.book.Use(o.Pod, o.node)
	s.book.Moved(s.state)
}
