package memory

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Protection is memory in bytes that the kernel does not reclaim from a cgroup: Min never, Low while it finds other
// memory.
type Protection struct{ Min, Low int64 }

// protect returns the protection of a Pod of the class, or of its container, that requests this much.
func (r Rules) protect(class corev1.PodQOSClass, request int64) Protection {
	switch {
	case !r.reserves:
	case class == corev1.PodQOSGuaranteed:
		return Protection{Min: request}
	case class == corev1.PodQOSBurstable:
		return Protection{Low: request}
	}
	return Protection{}
}

// ProtectPod returns the protection of a Pod's cgroup: its request as the scheduler counts it, with the overhead.
func (r Rules) ProtectPod(pod *corev1.Pod) Protection {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	return r.protect(qos.Class(pod), requests.Memory().Value())
}

// ProtectAll returns the protection of the cgroup of all Pods and of that of the Burstable ones. The kernel protects a
// cgroup only as far as its parent is protected, so the minimum of all Pods covers both kinds of protection.
func (r Rules) ProtectAll(pods []*corev1.Pod) (all, burstable Protection) {
	for _, pod := range pods {
		if podview.IsTerminal(pod) {
			continue
		}
		own := r.ProtectPod(pod)
		all.Min += own.Min + own.Low
		burstable.Low += own.Low
	}
	return all, burstable
}

// HighOf returns the memory in bytes beyond which a container is throttled: its request plus the configured part of the
// difference between limit and request, in whole pages. The node's allocatable memory replaces a missing limit. 0 means
// that the container is not throttled; containers of Guaranteed Pods never are.
func (r Rules) HighOf(pod *corev1.Pod, container *corev1.Container) int64 {
	if r.factor <= 0 || r.machine.PageSize <= 0 || qos.Class(pod) == corev1.PodQOSGuaranteed {
		return 0
	}
	request, _ := amounts(container)
	limit := sizes.InstanceOf(pod, container).MemoryLimit()
	if limit == 0 {
		limit = r.machine.Allocatable
	}
	if request >= limit {
		return 0
	}
	high := request + int64(r.factor*float64(limit-request))
	if high -= high % r.machine.PageSize; high <= request {
		return 0
	}
	return high
}
