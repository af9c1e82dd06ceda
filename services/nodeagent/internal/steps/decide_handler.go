package steps

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/lifecycle"
)

// reliesOnHandler reports whether the Pod depends on the features of the runtime handler.
func reliesOnHandler(pod *corev1.Pod) bool {
	recursive := func(m corev1.VolumeMount) bool {
		return ptr.Deref(m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled) != corev1.RecursiveReadOnlyDisabled
	}
	return containerconfig.OwnUsers(pod) || slices.ContainsFunc(lifecycle.Entries(pod), func(e lifecycle.Entry) bool {
		return slices.ContainsFunc(e.Spec.VolumeMounts, recursive)
	})
}
