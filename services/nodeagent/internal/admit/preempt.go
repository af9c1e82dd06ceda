package admit

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/noderesources"
	"keelson.dev/services/nodeagent/internal/qos"
)

// Resident is a Pod that holds resources of the node.
type Resident struct {
	Pod *corev1.Pod
	// Static means that the Pod is from a file of the node, Leaving that it is being ended already.
	Static, Leaving bool
}

// Room is what a static Pod has to wait for.
type Room struct {
	// Wait means that room is being made: there will be enough when the leaving Pods have ended.
	Wait bool
	// Victims are the Pods to end for it.
	Victims []*corev1.Pod
}

// MakeRoom decides which Pods of the API make room for a static one, which can run nowhere else. If ending all of
// them would not suffice, none is ended, and the node refuses the Pod. Pods of the lowest priority are chosen
// first, then those of the lowest QoS class, and none that the others make unnecessary.
func MakeRoom(pod *corev1.Pod, residents []Resident, allocatable corev1.ResourceList) Room {
	var now, staying noderesources.Usage
	var candidates []*corev1.Pod
	for _, r := range residents {
		requests := requestsOf(r.Pod)
		now.Add(requests)
		if r.Leaving {
			continue
		}
		staying.Add(requests)
		if !qos.IsCritical(r.Pod, r.Static) {
			candidates = append(candidates, r.Pod)
		}
	}
	wanted := requestsOf(pod)
	if now.Insufficient(wanted, allocatable) == nil {
		return Room{}
	}
	slices.SortStableFunc(candidates, cheaper)
	var victims []*corev1.Pod
	for staying.Insufficient(wanted, allocatable) != nil {
		if len(victims) == len(candidates) {
			return Room{}
		}
		next := candidates[len(victims)]
		staying.Remove(requestsOf(next))
		victims = append(victims, next)
	}
	for i := len(victims) - 1; i >= 0; i-- {
		staying.Add(requestsOf(victims[i]))
		if staying.Insufficient(wanted, allocatable) == nil {
			victims = slices.Delete(victims, i, i+1)
			continue
		}
		staying.Remove(requestsOf(victims[i]))
	}
	return Room{Wait: true, Victims: victims}
}

// cheaper orders Pods by the loss of ending them.
func cheaper(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(ptr.Deref(a.Spec.Priority, 0), ptr.Deref(b.Spec.Priority, 0)),
		cmp.Compare(slices.Index(classes, qos.Class(a)), slices.Index(classes, qos.Class(b))),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// classes are the QoS classes, the lowest first.
var classes = []corev1.PodQOSClass{corev1.PodQOSBestEffort, corev1.PodQOSBurstable, corev1.PodQOSGuaranteed}

func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}
