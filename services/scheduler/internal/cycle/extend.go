package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/extend"
	"keelson.dev/services/scheduler/internal/preempt"
)

// A Pod on which extenders have a say is decided upon in two steps: they are asked about the nodes that can take it,
// and when they have answered, the best is taken of those that still can. Meanwhile others go on. An extender is asked
// about one Pod at a time, as elsewhere, so that what it answers reckons with what it answered before; the other Pods
// on which it has a say are held in a line.

// maxPlans is how many of the cheapest plans extenders are asked about at least, and a share of all nodes at most.
const (
	maxPlans      = 100
	maxPlansShare = 10
)

// maxTexts bounds the reasons of extenders that a status repeats.
const maxTexts = 8

// extenders are those that have a say.
type extenders struct {
	list []schedulerv1.Extender
	busy []bool
}

// extended is the part of a pod that is about extenders.
type extended struct {
	asks     []int            // the extenders that have a say
	question *extend.Question // that they have not answered, while it is asking
	answer   *answer          // of a Pod of a group that is not decided upon yet
}

func newExtenders(list []schedulerv1.Extender) extenders {
	return extenders{list: list, busy: make([]bool, len(list))}
}

func (e *extenders) asked(p *corev1.Pod) []int {
	if len(e.list) == 0 {
		return nil
	}
	return extend.Asked(e.list, p)
}

func (e *extenders) occupy(q *extend.Question) {
	for _, i := range q.Extenders {
		e.busy[i] = true
	}
}

func (e *extenders) free(q *extend.Question) {
	for _, i := range q.Extenders {
		e.busy[i] = false
	}
}

// lineOf names the line of Pods on which the same extenders have a say.
func lineOf(asks []int) string { return fmt.Sprint(asks) }

// hold puts a Pod into its line while one of its extenders is asked about another.
func (c *Cycle) hold(p *pod, now time.Time) bool {
	if !c.asking(p) {
		return false
	}
	c.queue.Hold(&p.Entry, lineOf(p.asks), now)
	return true
}

// asking reports whether one of its extenders is asked about another Pod.
func (c *Cycle) asking(p *pod) bool {
	return slices.ContainsFunc(p.asks, func(i int) bool { return c.extenders.busy[i] })
}

// releaseLines makes the most urgent Pod of each line active; hold puts it back if it comes too early.
func (c *Cycle) releaseLines(now time.Time) {
	if len(c.extenders.list) == 0 || !slices.Contains(c.extenders.busy, false) {
		return
	}
	lines := c.queue.Lines()
	slices.Sort(lines)
	for _, line := range lines {
		c.queue.Release(line, now)
	}
}

// consult sees to it that extenders are asked which of the nodes that can take the Pod they let pass.
func (c *Cycle) consult(p *pod, v *Verdict) bool {
	if len(p.asks) == 0 {
		return false
	}
	open := c.open(p)
	if len(open) == 0 {
		return false
	}
	q := &extend.Question{Pod: p.object, Extenders: p.asks}
	for _, slot := range open {
		q.Nodes = append(q.Nodes, c.state.Name(slot))
	}
	v.Question = q
	return true
}

// open returns the nodes of which decide takes one: the one that the Pod is nominated for among those that can take it,
// or those that could if it comes before Pods of lower priority.
func (c *Cycle) open(p *pod) []columns.Slot {
	slots := c.nominations.takers(p)
	if slot := c.state.ReservedFor(p.UID); slot != columns.None && !slices.Contains(slots, slot) &&
		c.nominations.fits(p, slot) {
		slots = append(slots, slot)
	}
	if len(slots) == 0 {
		slots = c.nominations.nodesReservedBelow(p)
	}
	return slots
}

// ask notes that extenders are asked about the Pod.
func (p *pod) ask(q *extend.Question) {
	p.question = q
	p.enter(asking)
}

// Answered takes what extenders say. It returns false when there is nothing to do for the Pod now.
func (c *Cycle) Answered(q *extend.Question, a extend.Answer, now time.Time) (Verdict, bool) {
	c.extenders.free(q)
	c.catchUp(now)
	p := c.pods[q.Pod.UID]
	if p == nil || p.question != q {
		c.goOn(q, now)
		return Verdict{}, false
	}
	c.reread(p)
	p.question = nil
	p.rest()
	switch {
	case p.gang != nil:
		c.answeredForGang(p, a, now)
		return Verdict{}, false
	case p.phase == gated || !c.leading[p.profile.Name]:
		return Verdict{}, false
	case p.last == nil: // changed meanwhile
		c.queue.Add(&p.Entry, now)
		return Verdict{}, false
	case a.Err != nil:
		v := c.verdict(p)
		v.Failure = a.Err.Error()
		return c.delayed(p, v, now), true
	case q.Plans != nil:
		return c.choosePlan(p, a, now)
	}
	v := c.verdict(p)
	switch {
	case c.choose(p, a, &v, now):
		return c.conclude(p, v, now), true
	case len(a.Left) > 0: // taken meanwhile
		c.queue.Return(&p.Entry, now)
		return Verdict{}, false
	}
	v.Reasons = append(c.nominations.refusals(p), refusedBy(a.Failed)...)
	c.preempt(p, &v, now)
	return c.delayed(p, v, now), true
}

// choose gives the Pod one of the nodes that its extenders left.
func (c *Cycle) choose(p *pod, a extend.Answer, v *Verdict, now time.Time) bool {
	defer c.nominations.hold(p)()
	left := make(map[string]bool, len(a.Left))
	for _, name := range a.Left {
		left[name] = true
	}
	if slot := c.state.ReservedFor(p.UID); slot != columns.None && left[c.state.Name(slot)] && c.nominations.take(p, v) {
		return true
	}
	refused := func(slot columns.Slot) bool { return !left[c.state.Name(slot)] }
	takers := slices.DeleteFunc(c.nominations.takers(p), refused)
	choice, ok := p.class.BestAmong(c.state, takers, func(slot columns.Slot) int64 {
		return a.Scores[c.state.Name(slot)]
	})
	if !ok {
		return c.outrank(p, slices.DeleteFunc(c.nominations.nodesReservedBelow(p), refused), v, now)
	}
	v.Node, v.Score, v.Feasible = c.state.Name(choice.Slot), choice.Score, choice.Feasible
	return true
}

// delayed is conclude for a Pod that an extender keeps from its node: nothing that happens here tells when it changes
// its mind, so the Pod is tried again after a delay.
func (c *Cycle) delayed(p *pod, v Verdict, now time.Time) Verdict {
	if v.Question != nil || p.phase == evicting {
		return c.conclude(p, v, now)
	}
	p.last = &v
	c.queue.Delay(&p.Entry, now)
	return v
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
func (c *Cycle) consultPlans(p *pod, v *Verdict) bool {
	var asks []int
	for _, i := range p.asks {
		if c.extenders.list[i].PreemptVerb != "" {
			asks = append(asks, i)
		}
	}
	if len(asks) == 0 {
		return false
	}
	plans := c.nominations.search.Cheapest(p.preemptor(), max(maxPlans, v.Nodes/maxPlansShare))
	if len(plans) == 0 {
		return false
	}
	q := &extend.Question{Pod: p.object, Extenders: asks, Plans: map[string]extend.Victims{}}
	for _, plan := range plans {
		q.Plans[c.state.Name(plan.Slot)] = extend.Victims{Pods: plan.Victims, Violations: plan.Violations}
	}
	v.Question = q
	return true
}

// choosePlan takes the cheapest of the plans that extenders left.
func (c *Cycle) choosePlan(p *pod, a extend.Answer, now time.Time) (Verdict, bool) {
	v := *p.last
	v.Question = nil
	if len(a.Plans) == 0 {
		c.recordNoVictims(p, &v, []string{fmt.Sprintf("%d %s", v.Nodes, preempt.Refused)})
		return c.delayed(p, v, now), true
	}
	var best *preempt.Plan
	for name, victims := range a.Plans {
		slot := c.state.Slot(name)
		if slot == columns.None {
			continue
		}
		plan, err := c.nominations.search.Check(p.preemptor(), slot, victims)
		if err != nil {
			v.Failure = fmt.Sprintf("an extender chose a victim on node %s that cannot be one: %s", name, err)
			return c.delayed(p, v, now), true
		}
		if plan != nil && (best == nil || plan.Better(best, c.state)) {
			best = plan
		}
	}
	if best == nil {
		v.Preemption = "what extenders chose makes no room by now."
		return c.delayed(p, v, now), true
	}
	c.carryOut(p, &v, best, now)
	return c.delayed(p, v, now), true
}

// others adds to the reasons why no node helps the nodes that only an extender speaks against.
func (c *Cycle) others(p *pod, reasons []class.Reason) []class.Reason {
	if len(p.asks) == 0 {
		return reasons
	}
	n := c.state.Nodes()
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
