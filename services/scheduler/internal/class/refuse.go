package class

import (
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Refusal is why a node cannot take a Pod of a class: a number of that class, 0 when it can.
type Refusal int32

// Refuse returns why the node cannot take one more Pod of the class, as it is or as it would be.
func (c *Class) Refuse(s *columns.State, n columns.Node) Refusal {
	c.judge.domain.acquire(s)
	return Refusal(c.judge.refuse(s, n))
}

// Curable reports whether the removal of Pods from the node may cure a refusal.
func (c *Class) Curable(r Refusal) bool {
	refused := c.judge.refusals[r]
	switch refused.filter.Judge.On() {
	case rules.OnRoom, rules.OnDomain:
		return refused.reasons&refused.filter.Incurable == 0
	default:
		return false
	}
}

// OfDomain reports whether a refusal is about the domains of a node: nothing else speaks against it.
func (c *Class) OfDomain(r Refusal) bool {
	return c.judge.refusals[r].filter.Judge.On() == rules.OnDomain
}

// Texts returns the words of a refusal.
func (c *Class) Texts(r Refusal) []string {
	var texts []string
	refused := c.judge.refusals[r]
	for i, text := range refused.filter.Texts {
		if refused.reasons&(1<<i) != 0 {
			texts = append(texts, text)
		}
	}
	return texts
}

// Confined returns the nodes to which the Pods of the class confine themselves by name, each once; false when they do
// not.
func (c *Class) Confined(s *columns.State) ([]columns.Slot, bool) {
	if c.judge.pins == nil {
		return nil, false
	}
	return c.candidates(s), true
}

// FilterDomains returns the counts that filters of the class look at.
func (c *Class) FilterDomains(s *columns.State) []*columns.Domains {
	c.judge.domain.acquire(s)
	var tables []*columns.Domains
	for i := range c.judge.domain.filters {
		for _, count := range c.judge.domain.filters[i].counts {
			if table := c.judge.domain.tables[count]; !slices.Contains(tables, table) {
				tables = append(tables, table)
			}
		}
	}
	return tables
}

// DomainsVersion grows with every change of a count of a domain that the class looks at.
func (c *Class) DomainsVersion(s *columns.State) uint64 {
	c.judge.domain.acquire(s)
	version := uint64(0)
	for _, table := range c.judge.domain.tables {
		version += table.Version()
	}
	return version
}

// refuse is judgeWhole without the scores.
func (j *judge) refuse(s *columns.State, n columns.Node) refusalID {
	if v := j.byShape(s, n.Slot()); v.refusal != 0 {
		return v.refusal
	}
	for _, f := range j.room {
		if r := f.Judge.Node(n); r != 0 {
			return j.refusal(f, r)
		}
	}
	if len(j.domain.filters) == 0 {
		return 0
	}
	return j.byDomains(n)
}

// Curables returns how many nodes refuse a Pod of the class for a reason that the removal of Pods may cure, and how
// many for another.
func (c *Class) Curables(s *columns.State) (curable, incurable int) {
	count := func(r Refusal, nodes int) {
		switch {
		case r == 0:
		case c.Curable(r):
			curable += nodes
		default:
			incurable += nodes
		}
	}
	if slots, confined := c.Confined(s); confined {
		for _, slot := range slots {
			count(c.Refuse(s, s.Node(slot)), 1)
		}
		return curable, incurable + s.Nodes() - len(slots)
	}
	for id, nodes := range c.current(s).refusals() {
		count(Refusal(id), nodes)
	}
	return curable, incurable
}
