// Package class keeps, for each class of Pods that are alike to every rule, which nodes can take one more of them and
// which of these is best.
//
// A class judges a node again when the node has changed, and not before the class is used. Its feasible nodes lie in
// buckets: one for each combination of the raw scores that many nodes share (their shape's). Each bucket is a heap by
// the node's own score (its room). The best node is then the best of the bucket tops, and placing the N-th Pod of a
// class costs one sift in one heap, whatever the size of the cluster.
//
//	shape scores (3, 0)   heap of nodes by room score, fewest Pods, seeded tie-break
//	shape scores (0, 0)   heap ...
//
// Rules over topology domains fit in here: the node's domains (of a hostname: how many Pods there are) are part of the
// combination that makes a bucket, filters over them close buckets, and scores over them rank buckets.
//
// The package is pure; it is not safe for concurrent use.
//
//keelson:decision
package class

import (
	"math/bits"
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// ID names a class; IDs are not used again.
type ID uint32

// Class is one class of Pods.
type Class struct {
	ID  ID
	Pod rules.Pod

	set     *Set
	key     string
	pods    int    // Pods in the queue that are of this class
	touched uint64 // at which call of Set.Touch it was used last
	judge   judge
	index   *index                     // nil for a pinned class, and before the first question
	held    map[columns.Slot]refusalID // of the last call of Hold
}

// Choice is the best node for a Pod.
type Choice struct {
	Slot     columns.Slot
	Score    int64
	Feasible int
}

// Reason is a text and the number of nodes to which it applies.
type Reason struct {
	Text  string
	Nodes int
	// Whole is set where the Pod is refused, whatever the nodes.
	Whole bool
}

// Pins returns the names that confine the Pods of the class; nil when none do.
func (c *Class) Pins() *rules.Pins {
	if c.judge.pins == nil {
		return nil
	}
	return c.judge.pins.Pins
}

// LooksAtDomains reports whether the class judges nodes by their domains, so that a Pod that comes may help as one that
// goes does.
func (c *Class) LooksAtDomains() bool { return c.judge.domain.any() }

// DomainsChanged reports whether a count of a domain that the class looks at changed since the last call.
func (c *Class) DomainsChanged() bool { return c.judge.domain.changed() }

// Best returns the best node for one more Pod of the class, false when no node can take it.
func (c *Class) Best(s *columns.State) (Choice, bool) {
	if c.judge.pins != nil {
		return c.BestAmong(s, c.candidates(s), nil)
	}
	return c.current(s).best(s)
}

// Feasible returns how many nodes can take one more Pod of the class.
func (c *Class) Feasible(s *columns.State) int {
	if c.judge.pins == nil {
		return c.current(s).feasible()
	}
	n := 0
	for _, slot := range c.candidates(s) {
		if c.whole(s, slot).refusal == 0 {
			n++
		}
	}
	return n
}

// Refusals returns why nodes cannot take one more Pod of the class, with the number of nodes for each reason.
func (c *Class) Refusals(s *columns.State) []Reason {
	if c.judge.pins != nil {
		return c.refusalsPinned(s)
	}
	return c.judge.reasons(c.current(s).refusals())
}

// Judge returns why the node cannot take one more Pod of the class, as it is or as it would be; nothing when it can.
func (c *Class) Judge(s *columns.State, n columns.Node) []Reason {
	var refused refusalCounts
	refused.add(c.judge.judgeWhole(s, n).refusal, 1)
	return c.judge.reasons(refused)
}

// current returns the index, brought up to date.
func (c *Class) current(s *columns.State) *index {
	if c.index == nil {
		c.judge.domain.acquire(s)
		c.index = newIndex(&c.judge)
	}
	before := len(c.index.nodes)
	c.index.catchUp(s)
	c.index.hold(c.held)
	c.set.entries += len(c.index.nodes) - before
	return c.index
}

// drop frees the memory of the index; the next use builds it again.
func (c *Class) drop() {
	c.judge.domain.release()
	if c.index != nil {
		c.set.entries -= len(c.index.nodes)
		c.index = nil
	}
}

// candidates returns the known nodes among the pins, each once.
func (c *Class) candidates(s *columns.State) []columns.Slot {
	var slots []columns.Slot
	for _, name := range c.Pins().Names {
		if slot := s.Slot(name); slot != columns.None {
			slots = append(slots, slot)
		}
	}
	for _, host := range c.Pins().Hostnames {
		slots = append(slots, s.ByHostname(host)...)
	}
	slots = slices.DeleteFunc(slots, func(slot columns.Slot) bool { return !s.Known(slot) })
	slices.Sort(slots)
	return slices.Compact(slots)
}

func (c *Class) refusalsPinned(s *columns.State) []Reason {
	var (
		refused refusalCounts
		others  []Reason
	)
	candidates := c.candidates(s)
	for _, slot := range candidates {
		refused.add(c.whole(s, slot).refusal, 1)
	}
	if n := s.Nodes() - len(candidates); n > 0 && c.Pins().Judged {
		others = c.judgeOthers(s, candidates)
	} else if n > 0 {
		others = []Reason{{Text: c.judge.pins.Texts[0], Nodes: n, Whole: c.judge.pins.Whole}}
	}
	return c.judge.reasons(refused, others...)
}

// judgeOthers returns why the pins refuse the nodes that are not among them.
func (c *Class) judgeOthers(s *columns.State, candidates []columns.Slot) (others []Reason) {
	f := c.judge.pins
	counts := make([]int, len(f.Texts))
	for slot := range columns.Slot(s.Slots()) {
		if _, found := slices.BinarySearch(candidates, slot); found || !s.Known(slot) {
			continue
		}
		if r := f.Judge.View(s.View(slot)); r != 0 {
			counts[bits.TrailingZeros64(uint64(r))]++
		}
	}
	for i, n := range counts {
		if n > 0 {
			others = append(others, Reason{Text: f.Texts[i], Nodes: n})
		}
	}
	return others
}
