package podtopologyspread

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Why nodes are refused.
const (
	noLabel = "node(s) didn't match pod topology spread constraints (missing required label)"
	uneven  = "node(s) didn't match pod topology spread constraints"
)

func (d Defaults) filter(p rules.Pod) *rules.Filter {
	hard := d.constraints(p, corev1.DoNotSchedule)
	if len(hard) == 0 {
		return nil
	}
	counts := make([]columns.Count, len(hard))
	own := make([]int, len(hard))
	for i, c := range hard {
		if unread, ok := strings.CutPrefix(c.term.Purpose, name+": "); ok {
			return &rules.Filter{Texts: []string{"the Pod's topologySpreadConstraints cannot be read: " + unread},
				Pins: &rules.Pins{}, Whole: true, Judge: rules.ByShape(func(columns.View) rules.Reasons { return 1 })}
		}
		counts[i] = columns.Count{Term: c.term, Scope: scope(p, c.TopologySpreadConstraint, keys(hard))}
		if p.IsSelectedBy(c.term) {
			own[i] = 1
		}
	}
	return &rules.Filter{Texts: []string{noLabel, uneven}, Incurable: 1, // a label
		Judge: rules.ByDomain(counts, func(domains []columns.Domain) rules.Reasons {
			for i := range domains {
				at := &domains[i]
				if !at.Exists {
					return 1
				}
				least := at.Least
				if at.Domains < minDomains(hard[i].TopologySpreadConstraint) {
					least = 0
				}
				if at.Pods+own[i]-least > int(hard[i].MaxSkew) {
					return 2
				}
			}
			return 0
		})}
}
