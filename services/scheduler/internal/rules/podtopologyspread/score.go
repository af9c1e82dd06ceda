package podtopologyspread

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// score counts the matching Pods in the domains of a node. A key of few domains has large counts, so it weighs less.
func (d Defaults) score(p rules.Pod) *rules.Score {
	soft := d.constraints(p, corev1.ScheduleAnyway)
	if len(soft) == 0 {
		return nil
	}
	inAll := len(p.Spec.TopologySpreadConstraints) > 0 || !d.System
	var required []string
	if inAll {
		required = keys(soft)
	}
	counts := make([]columns.Count, len(soft))
	for i, c := range soft {
		// For a hostname the Pods on the node itself count, whichever nodes are spread over.
		counts[i] = columns.Count{Term: c.term, ByNode: true}
		if c.TopologyKey != corev1.LabelHostname {
			counts[i] = columns.Count{Term: c.term, Scope: scope(p, c.TopologySpreadConstraint, required)}
		}
	}
	return &rules.Score{Order: rules.EvenIsBest, InAll: inAll,
		Judge: rules.ByDomain(counts, func(domains []columns.Domain) int64 {
			sum := 0.0
			for i := range domains {
				at := &domains[i]
				if at.Exists {
					sum += float64(at.Pods)*math.Log(float64(at.Among+2)) + float64(soft[i].MaxSkew-1)
				}
			}
			return int64(math.Round(sum))
		})}
}
