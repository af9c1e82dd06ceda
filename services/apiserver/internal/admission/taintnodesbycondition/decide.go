package taintnodesbycondition

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// notReady keeps Pods away until the Node has said that it is ready.
var notReady = corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}

// decide returns the taints of a Node that is new.
func decide(have []corev1.Taint) []corev1.Taint {
	if slices.ContainsFunc(have, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) }) {
		return have
	}
	return append(slices.Clip(have), notReady)
}
