package resize

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/sizes"
)

// resizesSwapping reports whether a running container with swap, before or after the resize, would get another size of
// memory. Its swap depends on its request, and what it has swapped out may exceed the new share: only its next instance
// can have another size.
func resizesSwapping(given, wanted *corev1.Pod, swapOf func(*corev1.Pod, *corev1.Container) int64) bool {
	before := map[string]*corev1.Container{}
	for _, list := range [][]corev1.Container{given.Spec.InitContainers, given.Spec.Containers} {
		for i := range list {
			before[list[i].Name] = &list[i]
		}
	}
	for _, list := range [][]corev1.Container{wanted.Spec.InitContainers, wanted.Spec.Containers} {
		for i := range list {
			old, next := before[list[i].Name], &list[i]
			if old == nil || sizes.SameMemory(old, next) || restartsForMemory(next) {
				continue
			}
			if swapOf(given, old) > 0 || swapOf(wanted, next) > 0 {
				return true
			}
		}
	}
	return false
}

// restartsForMemory reports whether another size of memory gives the container a new instance.
func restartsForMemory(container *corev1.Container) bool {
	for _, policy := range container.ResizePolicy {
		if policy.ResourceName == corev1.ResourceMemory {
			return policy.RestartPolicy == corev1.RestartContainer
		}
	}
	return false
}
