// Package noderesourcesfit keeps Pods from nodes with too little left, and prefers the nodes with most left.
//
//keelson:decision
package noderesourcesfit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Args are the arguments of the plugin.
type Args struct {
	// Strategy scores a resource, LeastAllocated where it is nil; Ratio is set for RequestedToCapacityRatio, which
	// leaves out resources of score 0 and rounds.
	Strategy Strategy
	Ratio    bool
	Weights  []Weight
	// Ignored says which extended resources no node is refused for; nil for none.
	Ignored func(corev1.ResourceName) bool
}

// Rule refuses nodes on which a resource that the Pod asks for does not suffice, and ranks nodes by the share that
// would be left, or used, of the weighted resources.
func Rule(a Args) rules.Rule {
	return rules.Rule{Name: "NodeResourcesFit", Weight: 1, Filter: a.filter, Score: a.score}
}

// filter looks only at resources that the Pod asks for: a Pod that asks for none fits on a node that is overcommitted.
// Resources past rules.MaxTexts share the last text.
func (a Args) filter(p rules.Pod) *rules.Filter {
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
	for _, want := range u.Extended {
		if a.Ignored == nil || !a.Ignored(want.Name) {
			ask(want.Resource, want.Value, "Insufficient "+string(want.Name))
		}
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
