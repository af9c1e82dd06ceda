package pod

import (
	corev1 "k8s.io/api/core/v1"
)

// qosClass tells how a Pod is treated when its node runs short: Guaranteed if every container is limited to exactly
// what it requests of cpu and memory, BestEffort if none says anything about either, else Burstable. Resources of the
// Pod as a whole stand in for those of its containers. Ephemeral containers do not count.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	var all []corev1.ResourceRequirements
	if spec.Resources != nil {
		all = append(all, *spec.Resources)
	} else {
		for i := range spec.InitContainers {
			all = append(all, spec.InitContainers[i].Resources)
		}
		for i := range spec.Containers {
			all = append(all, spec.Containers[i].Resources)
		}
	}
	guaranteed, bestEffort := len(all) > 0, true
	for _, r := range all {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			if request.Sign() > 0 || limit.Sign() > 0 {
				bestEffort = false
			}
			if limit.Sign() <= 0 || (request.Sign() > 0 && request.Cmp(limit) != 0) {
				guaranteed = false
			}
		}
	}
	switch {
	case guaranteed:
		return corev1.PodQOSGuaranteed
	case bestEffort:
		return corev1.PodQOSBestEffort
	}
	return corev1.PodQOSBurstable
}
