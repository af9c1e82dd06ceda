// Package balancedallocation prefers nodes on which CPU and memory would be used to the same degree.
package balancedallocation

import (
	"math"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule ranks nodes by how near the used shares of CPU and memory would be to each other. A Pod that asks for neither
// changes no balance and gets no score.
func Rule() rules.Rule {
	return rules.Rule{Name: "NodeResourcesBalancedAllocation", Weight: 1, Score: score}
}

func score(p rules.Pod) *rules.Score {
	u := p.Usage
	if u.Basic[columns.CPU] == 0 && u.Basic[columns.Memory] == 0 {
		return nil
	}
	return &rules.Score{Judge: rules.ByRoom(func(n columns.Node) int64 { return balance(n.Room(), u) })}
}

// balance is MaxScore less the standard deviation of both shares, each counted as 1 at most.
func balance(room *columns.Room, u *columns.Usage) int64 {
	if room.Allocatable[columns.CPU] == 0 || room.Allocatable[columns.Memory] == 0 {
		return rules.MaxScore
	}
	cpu, memory := share(room, u, columns.CPU), share(room, u, columns.Memory)
	return int64((1 - math.Abs(cpu-memory)/2) * rules.MaxScore)
}

func share(room *columns.Room, u *columns.Usage, r columns.Resource) float64 {
	return min(1, float64(room.Used[r]+u.Basic[r])/float64(room.Allocatable[r]))
}
