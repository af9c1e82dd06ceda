package preempt

import (
	"math"
	"sort"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
)

// outcome is whether a node helps.
type outcome uint8

const (
	nothing outcome = iota // there is no node, or the Pod fits there
	useless                // what speaks against the node cannot be cured by taking Pods away
	victimless
	refused // even without all Pods of lower priority
	helps
	outcomes
)

// Cost is what a node's victims cost. The first field that differs decides between two nodes, the less the better, but
// for the last.
type Cost struct {
	Violations int32
	// Highest is the highest priority of a victim, Sum that of all, each made positive.
	Highest int64
	Sum     int64
	Victims int32
	// Started is when the longest running of the victims of the highest priority was started: the later, the better.
	Started int64
}

// Less reports whether c costs less than o.
func (c Cost) Less(o Cost) bool {
	less, _ := c.less(o)
	return less
}

// less reports whether a costs less than b, and whether both cost the same.
func (c Cost) less(o Cost) (less, same bool) {
	switch {
	case c.Violations != o.Violations:
		return c.Violations < o.Violations, false
	case c.Highest != o.Highest:
		return c.Highest < o.Highest, false
	case c.Sum != o.Sum:
		return c.Sum < o.Sum, false
	case c.Victims != o.Victims:
		return c.Victims < o.Victims, false
	default:
		return c.Started > o.Started, c.Started == o.Started
	}
}

// trialResult is what came out of a trial of one node.
type trialResult struct {
	outcome  outcome
	budgeted bool // whether a budget had a say
	refusal  class.Refusal
	cost     Cost
}

// try finds out what a node would cost, and leaves the victims in s.victims.
func (s *Search) try(p Preemptor, slot columns.Slot) trialResult {
	s.victims = s.victims[:0]
	if !s.state.Known(slot) {
		return trialResult{}
	}
	t := s.start(p, slot)
	refusal := p.Class.Refuse(s.state, t.Node())
	switch {
	case refusal == 0:
		return trialResult{}
	case !p.Class.Curable(refusal):
		return trialResult{outcome: useless}
	}
	lower := lowerThan(s.state.Occupants(slot), p.Priority)
	if len(lower) == 0 {
		return trialResult{outcome: victimless}
	}
	for i := range lower {
		t.Remove(&lower[i])
	}
	if refusal = p.Class.Refuse(s.state, t.Node()); refusal != 0 {
		return trialResult{outcome: refused, refusal: refusal}
	}
	result := trialResult{outcome: helps, budgeted: s.split(lower)}
	result.cost.Violations = s.reprieve(p, s.violating)
	s.reprieve(p, s.harmless)
	s.add(&result.cost)
	return result
}

// start begins the trial of a node, without the room that is kept there for the Pod itself and for lesser ones. The
// others for which room is kept are expected.
func (s *Search) start(p Preemptor, slot columns.Slot) *columns.Trial {
	t := &s.trial
	t.Start(s.state, slot)
	for _, r := range s.state.Reservations(slot) {
		if r.UID == p.UID || r.Priority < p.Priority {
			t.Release(&r)
		} else {
			t.Expect(&r)
		}
	}
	return t
}

// lowerThan returns the end of a node's Pods whose priority is lower.
func lowerThan(on []columns.Occupant, priority int32) []columns.Occupant {
	return on[sort.Search(len(on), func(i int) bool { return on[i].Priority < priority }):]
}

// split sorts out the Pods that no budget lets go, and reports whether there are budgets at all. Those that are leaving
// are in neither list.
func (s *Search) split(lower []columns.Occupant) (budgeted bool) {
	s.violating, s.harmless = s.violating[:0], s.harmless[:0]
	s.budgets.begin()
	for i := range lower {
		o := &lower[i]
		if s.leaving(o.Pod) {
			continue
		}
		violated, protected := s.budgets.violates(o.Pod)
		budgeted = budgeted || protected
		if violated {
			s.violating = append(s.violating, o)
		} else {
			s.harmless = append(s.harmless, o)
		}
	}
	return budgeted
}

// reprieve puts back the Pods beside which the preemptor still fits, in their order; the others are victims, which it
// counts.
func (s *Search) reprieve(p Preemptor, pods []*columns.Occupant) (victims int32) {
	for _, o := range pods {
		s.trial.Restore(o)
		if p.Class.Refuse(s.state, s.trial.Node()) != 0 {
			s.trial.Remove(o)
			s.victims = append(s.victims, o)
			victims++
		}
	}
	return victims
}

// add sums up the victims.
func (s *Search) add(c *Cost) {
	c.Highest, c.Started = math.MinInt64, math.MaxInt64
	c.Victims = int32(len(s.victims))
	for _, v := range s.victims {
		priority := int64(v.Priority)
		c.Sum += priority - math.MinInt32
		switch {
		case priority > c.Highest:
			c.Highest, c.Started = priority, v.Started
		case priority == c.Highest:
			c.Started = min(c.Started, v.Started)
		}
	}
}
