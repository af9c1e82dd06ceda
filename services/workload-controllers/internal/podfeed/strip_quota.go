package podfeed

import (
	"maps"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// mostAmounts bounds how many different amounts are remembered; beyond it they are forgotten and gathered anew.
const mostAmounts = 10_000

// known are the amounts of all Pods: most Pods ask for what others ask for.
var known = struct {
	sync.Mutex
	amounts map[string]*corev1.ResourceRequirements
}{amounts: map[string]*corev1.ResourceRequirements{}}

// amounts is what a Pod asks for altogether, as its quotas count it; nil for nothing. It is kept in place of what each
// container asks for, and shared by all Pods that ask for the same.
func amounts(pod *corev1.Pod) *corev1.ResourceRequirements {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	asked := &corev1.ResourceRequirements{Requests: resourcehelper.PodRequests(pod, options),
		Limits: resourcehelper.PodLimits(pod, options)}
	if len(asked.Requests) == 0 && len(asked.Limits) == 0 {
		return nil
	}
	key := spell(spell(nil, asked.Requests), asked.Limits)
	known.Lock()
	defer known.Unlock()
	if same, ok := known.amounts[string(key)]; ok {
		return same
	}
	if len(known.amounts) >= mostAmounts {
		clear(known.amounts)
	}
	known.amounts[string(key)] = asked
	return asked
}

// spell appends a text that no other amounts have.
func spell(key []byte, amounts corev1.ResourceList) []byte {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		key = append(append(append(append(key, name...), '='), amount.String()...), ',')
	}
	return append(key, ';')
}

// shared returns the same text in memory that all Pods share.
func shared[T ~string](text T) T { return T(unique.Make(string(text)).Value()) }

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
