package noderesourcesfit

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Weight says how much a resource counts in the score.
type Weight struct {
	// Resource is set for those that every node has; Name for an extended one, which counts for Pods that ask for it.
	Resource columns.Resource
	Name     corev1.ResourceName
	Weight   int64
}

// DefaultWeights count CPU and memory alike.
func DefaultWeights() []Weight {
	return []Weight{{Resource: columns.CPU, Weight: 1}, {Resource: columns.Memory, Weight: 1}}
}

// Strategy returns the score of a resource of which so much would be used; capacity is not 0.
type Strategy func(used, capacity int64) int64

// LeastAllocated prefers what has most left.
func LeastAllocated(used, capacity int64) int64 {
	return max(0, capacity-used) * rules.MaxScore / capacity
}

// MostAllocated prefers what is used most.
func MostAllocated(used, capacity int64) int64 {
	return min(used, capacity) * rules.MaxScore / capacity
}

// Point is a point of a line: the score, up to MaxScore, of a utilization in percent.
type Point struct{ Utilization, Score int64 }

// RequestedToCapacityRatio scores by a line through the points, which are sorted by their utilization.
func RequestedToCapacityRatio(line []Point) Strategy {
	return func(used, capacity int64) int64 {
		utilization := int64(100)
		if used <= capacity {
			utilization = used * 100 / capacity
		}
		for i, to := range line {
			switch {
			case utilization > to.Utilization:
			case i == 0:
				return to.Score
			default:
				from := line[i-1]
				return from.Score + (to.Score-from.Score)*(utilization-from.Utilization)/
					(to.Utilization-from.Utilization)
			}
		}
		return line[len(line)-1].Score
	}
}

// score returns the weighted mean of the scores of the resources. Resources that the node does not have do not count.
func (a Args) score(p rules.Pod) *rules.Score {
	strategy := a.Strategy
	if strategy == nil {
		strategy = LeastAllocated
	}
	weights := asked(a.Weights, p.Usage)
	if !a.Ratio {
		return &rules.Score{Judge: rules.ByRoom(func(n columns.Node) int64 {
			sum, total := mean(n, p.Usage, weights, strategy, false)
			if total == 0 {
				return 0
			}
			return sum / total
		})}
	}
	return &rules.Score{Judge: rules.ByRoom(func(n columns.Node) int64 {
		sum, total := mean(n, p.Usage, weights, strategy, true)
		if total == 0 {
			return 0
		}
		return int64(math.Round(float64(sum) / float64(total)))
	})}
}

// asked returns the weights with the resources of those that go by name, without those that the Pod does not ask for.
// How many Pods there are counts in no score, as in the field.
func asked(weights []Weight, u *columns.Usage) []Weight {
	var out []Weight
	for _, w := range weights {
		if w.Name == "" {
			if w.Resource != columns.Pods {
				out = append(out, w)
			}
			continue
		}
		for _, amount := range u.Extended {
			if amount.Name == w.Name {
				out = append(out, Weight{Resource: amount.Resource, Name: w.Name, Weight: w.Weight})
			}
		}
	}
	return out
}

// mean returns the weighted sum of the scores and the sum of the weights; positive leaves scores of 0 out of both.
func mean(n columns.Node, u *columns.Usage, weights []Weight, strategy Strategy, positive bool) (sum, total int64) {
	for _, w := range weights {
		capacity, used := n.Amounts(w.Resource)
		if capacity == 0 {
			continue
		}
		score := strategy(taken(n.Room(), used, u, w), capacity)
		if score > 0 || !positive {
			sum, total = sum+score*w.Weight, total+w.Weight
		}
	}
	return sum, total
}

func taken(room *columns.Room, used int64, u *columns.Usage, w Weight) int64 {
	switch {
	case w.Name != "":
		for _, amount := range u.Extended {
			if amount.Name == w.Name {
				return used + amount.Value
			}
		}
		return used
	case w.Resource == columns.CPU || w.Resource == columns.Memory:
		return room.Scored[w.Resource] + u.Scored[w.Resource]
	}
	return used + u.Basic[w.Resource]
}
