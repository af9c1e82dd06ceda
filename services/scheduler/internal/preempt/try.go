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
	bound    bool // whether Pods of lower priority stay that do not go without others
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
	lower := s.gather(lowerThan(s.state.Occupants(slot), p.Priority), p.Priority, slot)
	if len(lower) == 0 {
		return trialResult{outcome: victimless, bound: s.bound}
	}
	s.clear(lower)
	if refusal = s.refuse(p); refusal != 0 {
		return trialResult{outcome: refused, refusal: refusal, bound: s.bound}
	}
	result := trialResult{outcome: helps, budgeted: s.split(lower)}
	s.spare(p)
	result.cost = s.sum()
	return result
}

// clear takes parties away, those of other nodes too.
func (s *Search) clear(parties []party) {
	if s.apart {
		s.trial.Across()
	}
	for i := range parties {
		parties[i].leave(&s.trial)
	}
}

// refuse returns why the node of the trial cannot take the Pod: before those of other nodes are gone that go, or once
// they are.
func (s *Search) refuse(p Preemptor) class.Refusal {
	if s.apart {
		if refusal := p.Class.Refuse(s.state, s.trial.Here()); refusal != 0 {
			return refusal
		}
	}
	return p.Class.Refuse(s.state, s.trial.Node())
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

// split sorts out the parties of which no budget lets one go, and reports whether there are budgets at all. Pods that
// are leaving are in neither list.
func (s *Search) split(parties []party) (budgeted bool) {
	s.violating, s.harmless, s.violated = s.violating[:0], s.harmless[:0], s.violated[:0]
	s.budgets.begin()
	for _, p := range parties {
		if s.leaving(p.lead.Pod) {
			continue
		}
		p.pods(func(o *columns.Occupant) {
			violated, protected := s.budgets.violates(o.Pod)
			budgeted = budgeted || protected
			if violated {
				p.violations++
				s.violated = append(s.violated, o.Pod.UID)
			}
		})
		if p.violations > 0 {
			s.violating = append(s.violating, p)
		} else {
			s.harmless = append(s.harmless, p)
		}
	}
	return budgeted
}

// spare puts back the parties that can stay, in their order. One that stays may let another stay: it may have a volume
// that the preemptor then need not attach or, where Pods of other nodes are among them, raise the least count of all
// domains. So they are gone through again.
func (s *Search) spare(p Preemptor) {
	violating := s.reprieve(p, s.violating)
	s.reprieve(p, s.harmless)
	for again := len(s.victims) < len(s.violating)+len(s.harmless); again; {
		s.victims, s.before = s.before[:0], s.victims
		left := s.reprieve(p, s.before[:violating])
		s.reprieve(p, s.before[violating:])
		violating, again = left, len(s.victims) < len(s.before)
	}
}

// reprieve puts back the parties beside which the preemptor still fits, in their order; the others are victims, which
// it counts.
func (s *Search) reprieve(p Preemptor, parties []party) (victims int) {
	for i := range parties {
		parties[i].stay(&s.trial)
		if s.refuse(p) != 0 {
			parties[i].leave(&s.trial)
			s.victims = append(s.victims, parties[i])
			victims++
		}
	}
	return victims
}

// sum returns what the victims cost.
func (s *Search) sum() Cost {
	c := Cost{Highest: math.MinInt64, Started: math.MaxInt64}
	for i := range s.victims {
		v := &s.victims[i]
		c.Violations += v.violations
		v.pods(c.add)
	}
	return c
}

// add adds a victim.
func (c *Cost) add(v *columns.Occupant) {
	priority := int64(v.Priority)
	c.Victims, c.Sum = c.Victims+1, c.Sum+priority-math.MinInt32
	switch {
	case priority > c.Highest:
		c.Highest, c.Started = priority, v.Started
	case priority == c.Highest:
		c.Started = min(c.Started, v.Started)
	}
}
