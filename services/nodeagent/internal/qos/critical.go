package qos

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/systempriority"
)

// IsCritical reports whether the node or the mesh cannot do without the Pod: static Pods, and those of the two
// highest priority classes. No annotation makes a Pod static: any user who creates a Pod could set it.
func IsCritical(pod *corev1.Pod, static bool) bool {
	return static || ptr.Deref(pod.Spec.Priority, 0) >= systempriority.ClusterCritical
}
