// Package nodeunschedulable keeps Pods from nodes that `kubectl cordon` has marked.
//
//keelson:decision
package nodeunschedulable

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/tainttoleration"
)

// Rule refuses nodes with spec.unschedulable, unless the Pod tolerates the taint that stands for it.
func Rule() rules.Rule {
	return rules.Rule{Name: "NodeUnschedulable", Key: tainttoleration.Key, Filter: filter}
}

var taint = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

func filter(p rules.Pod) *rules.Filter {
	if tainttoleration.Tolerated(p.Spec.Tolerations, &taint) {
		return nil
	}
	return &rules.Filter{
		Texts: []string{"node(s) were unschedulable"},
		Judge: rules.ByShape(func(v columns.View) rules.Reasons {
			if v.Unschedulable {
				return 1
			}
			return 0
		}),
	}
}
