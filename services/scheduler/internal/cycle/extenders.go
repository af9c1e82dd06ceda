package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/extender"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/queue"
)

// The Cycle decides in two steps on a Pod on which extenders have a say: it asks them about the nodes that can take the
// Pod, and when they have answered, it takes the best of those that still can. Meanwhile other Pods go on. As in
// kube-scheduler, an extender is asked about one Pod at a time, so that its answer reckons with its earlier answers;
// the other Pods on which it has a say are held in a line.

// maxPlans is how many of the cheapest plans extenders are asked about at least, and a share of all nodes at most.
const (
	maxPlans      = 100
	maxPlansShare = 10
)

// maxTexts bounds the reasons of extenders that a status repeats.
const maxTexts = 8

// extenders are those that have a say, what they are asked, and what follows from their answers.
type extenders struct {
	state       *columns.State
	queue       *queue.Queue
	nominations *nominations
	list        []schedulerv1.Extender
	busy        []bool // asked about a Pod
}

// extended is the part of a pod that is about extenders.
type extended struct {
	asks     []int              // the extenders that have a say
	question *extender.Question // that they have not answered, while it is asking
	answer   *answer            // for a Pod of a group that waits for its decision
}

// answer is what extenders said about a Pod.
type answer struct {
	extender.Answer
	left map[string]bool
}

func newAnswer(a extender.Answer) *answer {
	said := &answer{Answer: a, left: make(map[string]bool, len(a.Left))}
	for _, name := range a.Left {
		said.left[name] = true
	}
	return said
}

func newExtenders(list []schedulerv1.Extender, n *nominations, q *queue.Queue) *extenders {
	return &extenders{state: n.state, queue: q, nominations: n, list: list, busy: make([]bool, len(list))}
}

func (e *extenders) consulted(p *corev1.Pod) []int {
	if len(e.list) == 0 {
		return nil
	}
	return extender.Consulted(e.list, p)
}

// ask notes that extenders are asked about the Pod.
func (e *extenders) ask(p *pod, q *extender.Question) {
	for _, i := range q.Extenders {
		e.busy[i] = true
	}
	p.question = q
	p.enter(asking)
}

func (e *extenders) free(q *extender.Question) {
	for _, i := range q.Extenders {
		e.busy[i] = false
	}
}

// lineOf names the line of Pods on which the same extenders have a say.
func lineOf(asks []int) string { return fmt.Sprint(asks) }

// hold puts a Pod into its line while one of its extenders is asked about another.
func (e *extenders) hold(p *pod, now time.Time) bool {
	if !e.asking(p) {
		return false
	}
	e.queue.Hold(&p.Entry, lineOf(p.asks), now)
	return true
}

// asking reports whether one of its extenders is asked about another Pod.
func (e *extenders) asking(p *pod) bool {
	return slices.ContainsFunc(p.asks, func(i int) bool { return e.busy[i] })
}

// releaseLines makes the most urgent Pod of each line active; hold puts it back if it comes too early.
func (e *extenders) releaseLines(now time.Time) {
	if len(e.list) == 0 || !slices.Contains(e.busy, false) {
		return
	}
	lines := e.queue.Lines()
	slices.Sort(lines)
	for _, line := range lines {
		e.queue.Release(line, now)
	}
}

// consult sees to it that extenders are asked which of the nodes that can take the Pod they let pass.
func (e *extenders) consult(p *pod, v *Verdict) bool {
	if len(p.asks) == 0 {
		return false
	}
	open := e.open(p)
	if len(open) == 0 {
		return false
	}
	q := &extender.Question{Pod: p.object, Extenders: p.asks}
	for _, slot := range open {
		q.Nodes = append(q.Nodes, e.state.Name(slot))
	}
	v.Question = q
	return true
}

// open returns the nodes of which decide takes one: the one that the Pod is nominated for among those that can take it,
// or those that could if it comes before Pods of lower priority.
func (e *extenders) open(p *pod) []columns.Slot {
	slots := e.nominations.takers(p)
	if slot := e.state.ReservedFor(p.UID); slot != columns.None && !slices.Contains(slots, slot) &&
		e.nominations.fits(p, slot) {
		slots = append(slots, slot)
	}
	if len(slots) == 0 {
		slots = e.nominations.nodesReservedBelow(p)
	}
	return slots
}

// choose gives the Pod the one that it is nominated for of the nodes that its extenders left, or the best.
func (e *extenders) choose(p *pod, said *answer, v *Verdict) bool {
	slot := e.state.ReservedFor(p.UID)
	if slot != columns.None && said.left[e.state.Name(slot)] && e.nominations.take(p, v) {
		return true
	}
	choice, ok := e.best(p, said, nil)
	if ok {
		v.Node, v.Score, v.Feasible = e.state.Name(choice.Slot), choice.Score, choice.Feasible
	}
	return ok
}

// best returns the best of the nodes, of all if they are nil, onto which the extenders let the Pod.
func (e *extenders) best(p *pod, said *answer, among []columns.Slot) (class.Choice, bool) {
	takers := slices.DeleteFunc(e.nominations.takers(p), func(slot columns.Slot) bool {
		return !e.left(said, slot) || among != nil && !slices.Contains(among, slot)
	})
	return p.class.BestAmong(e.state, takers, func(slot columns.Slot) int64 {
		return said.Scores[e.state.Name(slot)]
	})
}

// left reports whether extenders left the node.
func (e *extenders) left(said *answer, slot columns.Slot) bool {
	return slot != columns.None && said != nil && said.left[e.state.Name(slot)]
}

// passes reports whether the extenders let a Pod of a group onto the node.
func (e *extenders) passes(p *pod, slot columns.Slot) bool {
	return len(p.asks) == 0 || e.left(p.answer, slot)
}

// refusedBy counts the reasons of extenders, those of the most nodes first.
func refusedBy(failed map[string]string) []class.Reason {
	counts := map[string]int{}
	for _, text := range failed {
		counts[text]++
	}
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var out []class.Reason
	for i, text := range texts {
		if i < maxTexts {
			out = append(out, class.Reason{Text: text, Nodes: counts[text]})
			continue
		}
		if i == maxTexts {
			out = append(out, class.Reason{Text: "node(s) were refused by extenders for other reasons"})
		}
		out[maxTexts].Nodes += counts[text]
	}
	return out
}

// consultPlans sees to it that extenders are asked which of the cheapest plans for a Pod that fits nowhere they let
// pass.
func (e *extenders) consultPlans(p *pod, v *Verdict) bool {
	var asks []int
	for _, i := range p.asks {
		if e.list[i].PreemptVerb != "" {
			asks = append(asks, i)
		}
	}
	if len(asks) == 0 {
		return false
	}
	plans := e.nominations.search.Cheapest(p.preemptor(), max(maxPlans, v.Nodes/maxPlansShare))
	if len(plans) == 0 {
		return false
	}
	q := &extender.Question{Pod: p.object, Extenders: asks, Plans: map[string]extender.Victims{}}
	for _, plan := range plans {
		q.Plans[e.state.Name(plan.Slot)] = extender.Victims{Pods: plan.Victims, Violations: plan.Violations}
	}
	v.Question = q
	return true
}

// others adds to the reasons why no node helps the nodes that only an extender speaks against.
func (e *extenders) others(p *pod, reasons []class.Reason) []class.Reason {
	if len(p.asks) == 0 {
		return reasons
	}
	n := e.state.Nodes()
	for _, r := range reasons {
		n -= r.Nodes
	}
	if n <= 0 {
		return reasons
	}
	if i := slices.IndexFunc(reasons, func(r class.Reason) bool { return r.Text == preempt.NoVictims }); i >= 0 {
		reasons[i].Nodes += n
		return reasons
	}
	return append(reasons, class.Reason{Text: preempt.NoVictims, Nodes: n})
}

// unanswerable reports whether an extender gave no answer of use about the Pod.
func (p *pod) unanswerable() bool { return p.answer != nil && p.answer.Err != nil }

// forgetAnswers forgets what extenders said: it held for one decision.
func forgetAnswers(pods []*pod) {
	for _, p := range pods {
		p.answer = nil
	}
}

// refusedByExtenders reports whether extenders keep one of the Pods from a node. No event here says when
// they change their mind.
func refusedByExtenders(members []*pod) bool {
	return slices.ContainsFunc(members, func(p *pod) bool {
		return p.answer != nil && (p.answer.Err != nil || len(p.answer.Failed) > 0)
	})
}

// preemptVerb reports whether an extender has a say on whose room the Pod takes.
func (e *extenders) preemptVerb(p *pod) bool {
	return slices.ContainsFunc(p.asks, func(i int) bool { return e.list[i].PreemptVerb != "" })
}

// cheapest returns the cheapest of the plans that extenders left; nil where none makes room by now.
func (e *extenders) cheapest(p *pod, plans map[string][]types.UID) (best *preempt.Plan, err error) {
	for name, victims := range plans {
		slot := e.state.Slot(name)
		if slot == columns.None {
			continue
		}
		plan, err := e.nominations.search.Check(p.preemptor(), slot, victims)
		if err != nil {
			return nil, fmt.Errorf("an extender chose a victim on node %s that cannot be one: %w", name, err)
		}
		if plan != nil && (best == nil || plan.Better(best, e.state)) {
			best = plan
		}
	}
	return best, nil
}
