// Package noderesourcesfit keeps Pods from nodes with too little left, and prefers the nodes with most left.
package noderesourcesfit

import (
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Weight says how much a resource counts in the score.
type Weight struct {
	Resource columns.Resource
	Weight   int64
}

// DefaultWeights count CPU and memory alike.
func DefaultWeights() []Weight {
	return []Weight{{columns.CPU, 1}, {columns.Memory, 1}}
}

// Rule refuses nodes on which a resource that the Pod asks for does not suffice, and ranks nodes by the share that
// would be left of the weighted resources.
func Rule(weights []Weight) rules.Rule {
	return rules.Rule{
		Name:   "NodeResourcesFit",
		Weight: 1,
		Filter: filter,
		Score: func(p rules.Pod) *rules.Score {
			return &rules.Score{Judge: rules.ByRoom(func(n columns.Node) int64 {
				return leastAllocated(n.Room(), p.Usage, weights)
			})}
		},
	}
}

// filter looks only at resources that the Pod asks for: a Pod that asks for none fits on a node that is overcommitted.
// Resources past rules.MaxTexts share the last text.
func filter(p rules.Pod) *rules.Filter {
	var (
		asked []columns.Resource
		need  []int64
		texts []string
	)
	ask := func(r columns.Resource, amount int64, text string) {
		if amount <= 0 {
			return
		}
		asked, need = append(asked, r), append(need, amount)
		if len(texts) == rules.MaxTexts {
			texts[rules.MaxTexts-1] = "Insufficient further resources"
		} else {
			texts = append(texts, text)
		}
	}
	u := p.Usage
	ask(columns.Pods, u.Basic[columns.Pods], "Too many pods")
	for _, r := range [...]columns.Resource{columns.CPU, columns.Memory, columns.Ephemeral} {
		ask(r, u.Basic[r], "Insufficient "+string(columns.BasicNames[r]))
	}
	for _, a := range u.Extended {
		ask(a.Resource, a.Value, "Insufficient "+string(a.Name))
	}
	f := &rules.Filter{Texts: texts}
	n := len(texts)
	if 2*n <= rules.MaxTexts {
		// Each text stands twice: for what is in use, and for what the node never had.
		f.Texts, f.Incurable = slices.Concat(texts, texts), (1<<n-1)<<n
	}
	f.Judge = rules.ByRoom(func(node columns.Node) rules.Reasons {
		var reasons rules.Reasons
		for i, r := range asked {
			if node.Free(r) >= need[i] {
				continue
			}
			bit := min(i, n-1)
			if f.Incurable != 0 && r != columns.Pods && node.Allocatable(r) < need[i] {
				bit += n
			}
			reasons |= 1 << bit
		}
		return reasons
	})
	return f
}

// leastAllocated returns the weighted mean of the shares that would be left with the Pod there. Resources that the
// node does not have do not count.
func leastAllocated(room *columns.Room, u *columns.Usage, weights []Weight) int64 {
	var sum, total int64
	for _, w := range weights {
		capacity := room.Allocatable[w.Resource]
		if capacity == 0 {
			continue
		}
		total += w.Weight
		if left := capacity - taken(room, u, w.Resource); left > 0 {
			sum += w.Weight * (left * rules.MaxScore / capacity)
		}
	}
	if total == 0 {
		return 0
	}
	return sum / total
}

func taken(room *columns.Room, u *columns.Usage, r columns.Resource) int64 {
	if r == columns.CPU || r == columns.Memory {
		return room.Scored[r] + u.Scored[r]
	}
	return room.Used[r] + u.Basic[r]
}
