// Package tainttoleration keeps Pods from nodes whose taints they do not tolerate.
//
//keelson:decision
package tainttoleration

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses nodes with a taint NoSchedule or NoExecute that the Pod does not tolerate, and ranks nodes by how few
// such taints PreferNoSchedule they have.
func Rule() rules.Rule {
	return rules.Rule{Name: "TaintToleration", Weight: 3, Key: Key, Filter: filter, Score: score}
}

// Key appends the tolerations.
func Key(b []byte, p rules.Pod) []byte {
	for i := range p.Spec.Tolerations {
		t := &p.Spec.Tolerations[i]
		for _, part := range [...]string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			b = append(b, part...)
			b = append(b, 1)
		}
	}
	return b
}

// Tolerated reports whether one of the tolerations matches the taint.
func Tolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(logr.Discard(), taint, true) {
			return true
		}
	}
	return false
}

// Repels reports whether one of the taints keeps a Pod of these tolerations away.
func Repels(tolerations []corev1.Toleration, taints []corev1.Taint) bool {
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectPreferNoSchedule && !Tolerated(tolerations, &taints[i]) {
			return true
		}
	}
	return false
}

func filter(p rules.Pod) *rules.Filter {
	tolerations := p.Spec.Tolerations
	return &rules.Filter{
		Texts: []string{"node(s) had untolerated taint(s)"},
		Judge: rules.ByShape(func(v columns.View) rules.Reasons {
			if Repels(tolerations, v.Taints) {
				return 1
			}
			return 0
		}),
	}
}

func score(p rules.Pod) *rules.Score {
	tolerations := p.Spec.Tolerations
	return &rules.Score{
		Order: rules.LowerIsBetter,
		Judge: rules.ByShape(func(v columns.View) int64 {
			n := int64(0)
			for i := range v.Taints {
				taint := &v.Taints[i]
				if taint.Effect == corev1.TaintEffectPreferNoSchedule && !Tolerated(tolerations, taint) {
					n++
				}
			}
			return n
		}),
	}
}
