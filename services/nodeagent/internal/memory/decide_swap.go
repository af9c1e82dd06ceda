package memory

import (
	"math/bits"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/qos"
)

// SwapOf returns the swap in bytes that a container may use: its memory request divided by the node's memory, times the
// node's swap. Only containers of Burstable Pods that are not critical get swap, unless their request equals their
// limit: this is how authors keep a container in memory.
func (r Rules) SwapOf(pod *corev1.Pod, container *corev1.Container) int64 {
	if r.swap <= 0 || qos.Class(pod) != corev1.PodQOSBurstable || r.isCritical(pod) {
		return 0
	}
	request, limit := amounts(container)
	if request <= 0 || request == limit || request > r.machine.Memory {
		return 0
	}
	high, low := bits.Mul64(uint64(request), uint64(r.swap))
	share, _ := bits.Div64(high, low, uint64(r.machine.Memory)) // at most the swap: the request is at most the memory
	return int64(share)
}

func (r Rules) isCritical(pod *corev1.Pod) bool {
	return qos.IsCritical(pod, r.isStatic != nil && r.isStatic(pod.UID))
}

// SwapOfPod returns the swap in bytes that the Pod's containers may use together.
func (r Rules) SwapOfPod(pod *corev1.Pod) int64 {
	var sum int64
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			sum += r.SwapOf(pod, &list[i])
		}
	}
	return sum
}
