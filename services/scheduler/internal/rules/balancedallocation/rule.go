// Package balancedallocation prefers nodes on which resources would be used to the same degree.
//
//keelson:decision
package balancedallocation

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// MaxResources is how many resources may count.
const MaxResources = 16

// Rule ranks nodes by how near the used shares of the resources would be to each other. A Pod that asks for none of
// them changes no balance and gets no score.
func Rule(resources ...corev1.ResourceName) rules.Rule {
	if len(resources) == 0 {
		resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	}
	return rules.Rule{Name: "NodeResourcesBalancedAllocation", Weight: 1,
		Score: func(p rules.Pod) *rules.Score { return score(p.Usage, resources) }}
}

// wish is what the Pod asks for of a resource.
type wish struct {
	resource columns.Resource
	amount   int64
}

func score(u *columns.Usage, resources []corev1.ResourceName) *rules.Score {
	wishes, asks := wishesOf(u, resources)
	if !asks {
		return nil
	}
	return &rules.Score{Judge: rules.ByRoom(func(n columns.Node) int64 { return balance(n, wishes) })}
}

// wishesOf returns the resources that count, those that not every node has only where the Pod asks for them, and
// whether it asks for any. How many Pods there are counts in no score, as in the field.
func wishesOf(u *columns.Usage, resources []corev1.ResourceName) (wishes []wish, asks bool) {
	for _, name := range resources {
		for r, basic := range columns.BasicNames {
			if name == basic && name != corev1.ResourcePods {
				wishes = append(wishes, wish{columns.Resource(r), u.Basic[r]})
				asks = asks || u.Basic[r] > 0
			}
		}
		for _, a := range u.Extended {
			if name == a.Name {
				wishes, asks = append(wishes, wish{a.Resource, a.Value}), true
			}
		}
	}
	return wishes, asks
}

// balance is MaxScore less the standard deviation of the shares, each counted as 1 at most, of the resources that the
// node has.
func balance(n columns.Node, wishes []wish) int64 {
	var shares [MaxResources]float64
	some := shares[:0]
	sum := 0.0
	for _, w := range wishes {
		if allocatable, used := n.Amounts(w.resource); allocatable != 0 {
			some = append(some, min(1, float64(used+w.amount)/float64(allocatable)))
			sum += some[len(some)-1]
		}
	}
	deviation := 0.0
	switch {
	case len(some) == 2:
		deviation = math.Abs(some[0]-some[1]) / 2
	case len(some) > 2:
		mean := sum / float64(len(some))
		for _, share := range some {
			deviation += (share - mean) * (share - mean)
		}
		deviation = math.Sqrt(deviation / float64(len(some)))
	}
	return int64((1 - deviation) * rules.MaxScore)
}
