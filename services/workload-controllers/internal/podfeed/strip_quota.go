package podfeed

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// allAmounts are those of all Pods: most Pods ask for what others ask for.
var allAmounts = pool[corev1.ResourceRequirements]{known: map[string]*corev1.ResourceRequirements{}}

// amounts is what a Pod asks for altogether, as its quotas count it; nil for nothing. It is kept beside what each
// container asks for, and shared by all Pods that ask for the same.
func amounts(pod *corev1.Pod) *corev1.ResourceRequirements {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	asked := &corev1.ResourceRequirements{Requests: resourcehelper.PodRequests(pod, options),
		Limits: resourcehelper.PodLimits(pod, options)}
	if len(asked.Requests) == 0 && len(asked.Limits) == 0 {
		return nil
	}
	return allAmounts.share(string(spell(spell(nil, asked.Requests), asked.Limits)), asked)
}

// spell appends a text that no other amounts have.
func spell(key []byte, amounts corev1.ResourceList) []byte {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		key = append(append(append(append(key, name...), '='), amount.String()...), ',')
	}
	return append(key, ';')
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
