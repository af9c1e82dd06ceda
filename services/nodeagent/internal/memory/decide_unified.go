package memory

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/qos"
)

// The settings of a cgroup of version 2, and the value that removes a limit.
const (
	SwapMax  = "memory.swap.max"
	Min      = "memory.min"
	Low      = "memory.low"
	highMark = "memory.high"
	oomGroup = "memory.oom.group"
	Max      = "max"
)

// Unified returns a container's settings of version 2 besides its limit. They are complete: after a resize, they
// replace all settings of the former size. It is nil on version 1.
func (r Rules) Unified(pod *corev1.Pod, container *corev1.Container) map[string]string {
	if !r.machine.CgroupV2 {
		return nil
	}
	out := map[string]string{}
	if r.killsWhole {
		out[oomGroup] = "1"
	}
	if r.limitsSwap {
		out[SwapMax] = strconv.FormatInt(r.SwapOf(pod, container), 10)
	}
	if r.factor > 0 {
		out[highMark] = Max
		if bytes := r.HighOf(pod, container); bytes > 0 {
			out[highMark] = strconv.FormatInt(bytes, 10)
		}
	}
	if r.reserves {
		request, _ := amounts(container)
		own := r.protect(qos.Class(pod), request)
		out[Min], out[Low] = strconv.FormatInt(own.Min, 10), strconv.FormatInt(own.Low, 10)
	}
	return out
}

// CgroupV2 reports whether the machine has the unified hierarchy.
func (r Rules) CgroupV2() bool { return r.machine.CgroupV2 }
