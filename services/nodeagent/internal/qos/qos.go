// Package qos derives the quality-of-service class of a Pod and the node's settings for it. It is pure.
//
//keelson:decision
package qos

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/systempriority"
)

// deciding are the resources that determine the class.
var deciding = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Class returns the class that the API server recorded, or computes it for a Pod that the API server has never seen
// (a static Pod).
func Class(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return compute(pod)
}

func compute(pod *corev1.Pod) corev1.PodQOSClass {
	requirements := requirementsOf(pod)
	any, guaranteed := false, true
	for _, r := range requirements {
		for _, name := range deciding {
			request, limit := r.Requests[name], r.Limits[name]
			any = any || !request.IsZero() || !limit.IsZero()
			if limit.IsZero() || (!request.IsZero() && request.Cmp(limit) != 0) {
				guaranteed = false
			}
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// requirementsOf returns the Pod's own requirements if it has any, else those of all its app and init containers.
func requirementsOf(pod *corev1.Pod) []corev1.ResourceRequirements {
	if resource.IsPodLevelResourcesSet(pod) {
		return []corev1.ResourceRequirements{*pod.Spec.Resources}
	}
	return containerRequirements(pod)
}

func containerRequirements(pod *corev1.Pod) []corev1.ResourceRequirements {
	var all []corev1.ResourceRequirements
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			all = append(all, list[i].Resources)
		}
	}
	return all
}

// The kernel kills processes with a high score first; 1000 is the highest.
const (
	scoreGuaranteed = -997
	scoreBestEffort = 1000
)

// OOMScore returns the oom_score_adj of a container of the Pod. Burstable containers are between the other classes, the
// lower the more of the node's memory they requested; a sidecar is never killed before the containers that it serves.
func OOMScore(pod *corev1.Pod, container *corev1.Container, memoryCapacity int64) int64 {
	if ptr.Deref(pod.Spec.Priority, 0) >= systempriority.NodeCritical {
		return scoreGuaranteed
	}
	switch Class(pod) {
	case corev1.PodQOSGuaranteed:
		return scoreGuaranteed
	case corev1.PodQOSBestEffort:
		return scoreBestEffort
	}
	shared := sharedMemory(pod)
	score := burstableScore(container, shared, memoryCapacity)
	if isSidecar(pod, container) {
		for i := range pod.Spec.Containers {
			score = min(score, burstableScore(&pod.Spec.Containers[i], shared, memoryCapacity))
		}
	}
	return score
}

// isSidecar reports whether a container of the Pod is an init container that keeps running.
func isSidecar(pod *corev1.Pod, container *corev1.Container) bool {
	return podview.IsSidecar(container) && slices.ContainsFunc(pod.Spec.InitContainers,
		func(c corev1.Container) bool { return c.Name == container.Name })
}

// sharedMemory returns how much of the memory requested by the Pod as a whole its containers have not requested, in
// bytes per container, including those that have ended.
func sharedMemory(pod *corev1.Pod) int64 {
	if pod.Spec.Resources == nil || pod.Spec.Resources.Requests.Memory().IsZero() {
		return 0
	}
	theirs := resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{})
	rest := pod.Spec.Resources.Requests.Memory().Value() - theirs.Memory().Value()
	return rest / int64(len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
}

func burstableScore(container *corev1.Container, shared, memoryCapacity int64) int64 {
	if memoryCapacity <= 0 {
		return scoreBestEffort - 1
	}
	request := container.Resources.Requests.Memory().Value() + shared
	share := int64(float64(request) / float64(memoryCapacity) * 1000)
	return min(max(scoreBestEffort-share, scoreBestEffort+scoreGuaranteed), scoreBestEffort-1)
}

// CPUShares converts thousandths of a core to the weight of cgroup v1.
func CPUShares(milli int64) int64 {
	return min(max(milli*1024/1000, 2), 262144)
}

// CPUPeriod is the period in microseconds of CPU limits.
const CPUPeriod = 100000

// CPUQuota converts thousandths of a core to microseconds of each CPUPeriod. 0 means no limit.
func CPUQuota(milli int64) int64 {
	if milli == 0 {
		return 0
	}
	return max(milli*CPUPeriod/1000, 1000)
}

// PodMemoryLimit returns the memory in bytes that the Pod as a whole may use, or 0 if neither the Pod itself nor each
// of its containers has a limit.
func PodMemoryLimit(pod *corev1.Pod) int64 { return podLimit(pod, corev1.ResourceMemory) }

// PodCPULimit returns the thousandths of a core that the Pod as a whole may use, or 0 if neither the Pod itself nor
// each of its containers has a limit.
func PodCPULimit(pod *corev1.Pod) int64 { return podLimit(pod, corev1.ResourceCPU) }

func podLimit(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if !limitedAsAWhole(pod, name) && !allLimited(pod, name) {
		return 0
	}
	limit := resource.PodLimits(pod, resource.PodResourcesOptions{})[name]
	if name == corev1.ResourceCPU {
		return limit.MilliValue()
	}
	return limit.Value()
}

// limitedAsAWhole reports whether the Pod itself has a limit.
func limitedAsAWhole(pod *corev1.Pod, name corev1.ResourceName) bool {
	return pod.Spec.Resources != nil && isSet(pod.Spec.Resources.Limits, name)
}

// allLimited reports whether every container has a limit of its own.
func allLimited(pod *corev1.Pod, name corev1.ResourceName) bool {
	for _, r := range containerRequirements(pod) {
		if !isSet(r.Limits, name) {
			return false
		}
	}
	return true
}

func isSet(list corev1.ResourceList, name corev1.ResourceName) bool {
	quantity := list[name]
	return !quantity.IsZero()
}
