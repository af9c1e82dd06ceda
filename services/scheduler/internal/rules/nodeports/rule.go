// Package nodeports keeps Pods from nodes where one of their host ports is in use.
//
//keelson:decision
package nodeports

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses nodes where a host port of the Pod is in use.
func Rule() rules.Rule {
	return rules.Rule{Name: "NodePorts", Filter: filter}
}

func filter(p rules.Pod) *rules.Filter {
	ports := p.Usage.Ports
	if len(ports) == 0 {
		return nil
	}
	return &rules.Filter{
		Texts: []string{"node(s) didn't have free ports for the requested pod ports"},
		Judge: rules.ByRoom(func(n columns.Node) rules.Reasons {
			if n.PortsFree(ports) {
				return 0
			}
			return 1
		}),
	}
}
