// Package noderesources compares what Pods request with what a node has for them. It stands once, so that what binds
// a Pod to a node and the node itself count alike.
//
//keelson:decision
package noderesources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Usage is what the Pods of a node request together.
type Usage struct {
	Pods     int64
	Requests corev1.ResourceList
}

// Add counts a Pod with these requests.
func (u *Usage) Add(requests corev1.ResourceList) {
	u.Pods++
	if u.Requests == nil {
		u.Requests = make(corev1.ResourceList, len(requests))
	}
	for name, quantity := range requests {
		u.Requests[name] = plus(u.Requests[name], quantity)
	}
}

// Remove counts a Pod with these requests no more.
func (u *Usage) Remove(requests corev1.ResourceList) {
	u.Pods--
	for name, quantity := range requests {
		rest := u.Requests[name].DeepCopy()
		rest.Sub(quantity)
		u.Requests[name] = rest
	}
}

// Insufficient is a resource that does not suffice for one more Pod.
type Insufficient struct {
	Name                      corev1.ResourceName
	Requested, Used, Capacity resource.Quantity
}

// Insufficient returns what a Pod with these requests lacks on a node where so much is used: its place among the Pods,
// else the first resource by name. Nil: the Pod fits. A resource that the node does not name is one that it does not
// have; but it then takes any number of Pods, and an extended resource counts elsewhere: an extender of a scheduler
// keeps account of it. What is not requested is not looked at.
func (u Usage) Insufficient(requests, allocatable corev1.ResourceList) *Insufficient {
	if capacity, ok := allocatable[corev1.ResourcePods]; ok && u.Pods+1 > capacity.Value() {
		return &Insufficient{Name: corev1.ResourcePods, Requested: *resource.NewQuantity(1, resource.DecimalSI),
			Used: *resource.NewQuantity(u.Pods, resource.DecimalSI), Capacity: capacity}
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		requested, used := requests[name], u.Requests[name]
		capacity, named := allocatable[name]
		if !named && extended(name) {
			continue
		}
		if sum := plus(used, requested); !requested.IsZero() && sum.Cmp(capacity) > 0 {
			return &Insufficient{Name: name, Requested: requested, Used: used, Capacity: capacity}
		}
	}
	return nil
}

// extended says that a resource is neither of the node itself nor of the API's own domain.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func plus(a, b resource.Quantity) resource.Quantity {
	sum := a.DeepCopy()
	sum.Add(b)
	return sum
}
