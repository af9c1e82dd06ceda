// Package nodename keeps a Pod that already names its node from all others.
//
//keelson:decision
package nodename

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses every node but spec.nodeName, where that is set.
func Rule() rules.Rule {
	return rules.Rule{
		Name:   "NodeName",
		Key:    func(b []byte, p rules.Pod) []byte { return append(b, p.Spec.NodeName...) },
		Filter: filter,
	}
}

func filter(p rules.Pod) *rules.Filter {
	name := p.Spec.NodeName
	if name == "" {
		return nil
	}
	return &rules.Filter{
		Texts: []string{"node(s) didn't match the requested node name"},
		Judge: rules.ByName(func(v columns.View) rules.Reasons {
			if v.Name != name {
				return 1
			}
			return 0
		}),
	}
}
