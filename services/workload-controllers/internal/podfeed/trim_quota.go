package podfeed

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// amounts is what a Pod asks for altogether, as its quotas count it; nil for nothing. It is kept beside what each
// container asks for.
func amounts(pod *corev1.Pod) *corev1.ResourceRequirements {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}
	asked := &corev1.ResourceRequirements{Requests: resourcehelper.PodRequests(pod, options),
		Limits: resourcehelper.PodLimits(pod, options)}
	if len(asked.Requests) == 0 && len(asked.Limits) == 0 {
		return nil
	}
	return asked
}

// crossing adds to an affinity that the Pod's place depends on Pods of other namespaces, and no more about them.
func crossing(affinity *corev1.Affinity) *corev1.Affinity {
	crossing := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"*"}}},
	}}
	if affinity != nil {
		crossing.NodeAffinity = affinity.NodeAffinity
	}
	return crossing
}
