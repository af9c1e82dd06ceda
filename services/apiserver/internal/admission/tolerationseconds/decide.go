package tolerationseconds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Seconds is how long a Pod that says nothing stays on a Node that is not ready or not reachable.
const Seconds = int64(300)

// decide returns the tolerations that a Pod with the given ones still needs, so that it survives a short trouble of its
// Node but not a long one.
func decide(have []corev1.Toleration) []corev1.Toleration {
	var missing []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if tolerates(have, key) {
			continue
		}
		missing = append(missing, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: ptr.To(Seconds),
		})
	}
	return missing
}

// tolerates reports whether the Pod says anything about a taint's eviction, be it through an empty key or effect.
func tolerates(have []corev1.Toleration, key string) bool {
	for _, t := range have {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
