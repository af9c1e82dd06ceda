// Package room knows what the Pods of each node ask for, so that no binding goes to a node that would refuse the Pod.
package room

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Use is what the Pods of a node ask for together.
type Use struct {
	Pods     int64
	Requests corev1.ResourceList
}

// Lacking says what a Pod with these requests would not find on the node; empty: it fits. The node's agent counts in
// the same way. A node that has not yet said what it has is not judged.
func Lacking(requests corev1.ResourceList, used Use, allocatable corev1.ResourceList) string {
	if len(allocatable) == 0 {
		return ""
	}
	if capacity, ok := allocatable[corev1.ResourcePods]; ok && used.Pods+1 > capacity.Value() {
		return fmt.Sprintf("too many pods, bound: %d, allocatable: %s", used.Pods, &capacity)
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		requested, taken, capacity := requests[name], used.Requests[name], allocatable[name]
		if sum := plus(taken, requested); !requested.IsZero() && sum.Cmp(capacity) > 0 {
			return fmt.Sprintf("insufficient %s, requested: %s, used: %s, allocatable: %s", name, &requested, &taken,
				&capacity)
		}
	}
	return ""
}

// add counts a Pod with these requests.
func (u *Use) add(requests corev1.ResourceList) {
	u.Pods++
	if u.Requests == nil {
		u.Requests = make(corev1.ResourceList, len(requests))
	}
	for name, quantity := range requests {
		u.Requests[name] = plus(u.Requests[name], quantity)
	}
}

// remove counts a Pod with these requests no more.
func (u *Use) remove(requests corev1.ResourceList) {
	u.Pods--
	for name, quantity := range requests {
		rest := u.Requests[name].DeepCopy()
		rest.Sub(quantity)
		u.Requests[name] = rest
	}
}

func plus(a, b resource.Quantity) resource.Quantity {
	sum := a.DeepCopy()
	sum.Add(b)
	return sum
}
