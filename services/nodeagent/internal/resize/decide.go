// Package resize manages the sizes of a node's Pods: what each was allocated and desires (Allocation), how far that is
// actuated (Actuation), and which resizes the node grants, defers or finds infeasible (Decide). It is pure.
//
//keelson:decision
package resize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"keelson.dev/kit/noderesources"
	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Candidate is a Pod whose desired size differs from the allocated one.
type Candidate struct {
	// Allocated is the Pod at the size that the node has allocated, Desired at the size in its spec.
	Allocated, Desired *corev1.Pod
	// PendingSince is since when the resize is deferred or infeasible; zero for a new one.
	PendingSince time.Time
}

// Input is all that the decision depends on.
type Input struct {
	Candidates []Candidate
	// Others are the node's other Pods, at their allocated sizes.
	Others      []*corev1.Pod
	Allocatable corev1.ResourceList
	// PinsCPUs means that the node gives Guaranteed Pods CPUs of their own, whose number must not change.
	PinsCPUs bool
	// SwapOf returns the swap in bytes that a container of a Pod gets; nil: none gets any.
	SwapOf func(*corev1.Pod, *corev1.Container) int64
}

// Verdict is the answer to a candidate. Without a reason the resize is granted.
type Verdict struct {
	// Reason is the reason of the condition PodResizePending.
	Reason  string
	Message string
}

// Granted reports whether the Pod is allocated the size that it desires.
func (v Verdict) Granted() bool { return v.Reason == "" }

// request is a candidate with the amounts that order and verdict depend on.
type request struct {
	Candidate
	allocated, desired corev1.ResourceList
	// more holds the desired amounts that exceed the allocated ones.
	more corev1.ResourceList
}

func newRequest(c Candidate) request {
	r := request{Candidate: c, allocated: requests(c.Allocated), desired: requests(c.Desired),
		more: corev1.ResourceList{}}
	for _, name := range sizes.Resized {
		if quantity := r.desired[name]; quantity.Cmp(r.allocated[name]) > 0 {
			r.more[name] = quantity
		}
	}
	return r
}

// Decide answers the candidates one after the other: what one is allocated counts against those after it.
func Decide(in Input) map[types.UID]Verdict {
	var used noderesources.Usage
	for _, pod := range in.Others {
		used.Add(requests(pod))
	}
	all := make([]request, 0, len(in.Candidates))
	for _, c := range in.Candidates {
		r := newRequest(c)
		used.Add(r.allocated)
		all = append(all, r)
	}
	slices.SortStableFunc(all, inOrder)
	capacity := compute(in.Allocatable)
	out := make(map[types.UID]Verdict, len(all))
	for _, r := range all {
		used.Remove(r.allocated)
		verdict := decide(r.more, used, capacity)
		if in.PinsCPUs && class(r.Allocated) == 0 && otherCPUs(r.Allocated, r.Desired) {
			verdict = Verdict{Reason: corev1.PodReasonInfeasible,
				Message: `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`}
		}
		if in.SwapOf != nil && resizesSwapping(r.Allocated, r.Desired, in.SwapOf) {
			verdict = Verdict{Reason: corev1.PodReasonInfeasible,
				Message: "In-place resize of containers with swap is not supported."}
		}
		if verdict.Granted() {
			used.Add(r.desired)
		} else {
			used.Add(r.allocated)
		}
		out[r.Allocated.UID] = verdict
	}
	return out
}

// inOrder puts first the resizes that need no more than before, then orders Pods by priority, by QoS class, and by how
// long they are pending, the new ones last.
func inOrder(a, b request) int {
	grows := func(r request) int { return min(len(r.more), 1) }
	since := func(r request) int64 {
		if r.PendingSince.IsZero() {
			return math.MaxInt64
		}
		return r.PendingSince.UnixNano()
	}
	return cmp.Or(cmp.Compare(grows(a), grows(b)), cmp.Compare(priority(b.Allocated), priority(a.Allocated)),
		cmp.Compare(class(a.Allocated), class(b.Allocated)), cmp.Compare(since(a), since(b)),
		cmp.Compare(a.Allocated.UID, b.Allocated.UID))
}

func priority(pod *corev1.Pod) int32 {
	if p := pod.Spec.Priority; p != nil {
		return *p
	}
	return 0
}

func class(pod *corev1.Pod) int {
	return slices.Index([]corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort},
		qos.Class(pod))
}

// otherCPUs reports whether a container requests another amount of cpu than it has.
func otherCPUs(given, wanted *corev1.Pod) bool {
	same := func(a, b corev1.Container) bool {
		return a.Resources.Requests.Cpu().Cmp(*b.Resources.Requests.Cpu()) == 0
	}
	return !slices.EqualFunc(given.Spec.Containers, wanted.Spec.Containers, same) ||
		!slices.EqualFunc(given.Spec.InitContainers, wanted.Spec.InitContainers, same)
}

// decide answers a candidate that requests these larger amounts. used is what all other Pods request. A resize without
// larger amounts is always granted: the node has had room for it.
func decide(more corev1.ResourceList, used noderesources.Usage, capacity corev1.ResourceList) Verdict {
	if lack := (noderesources.Usage{}).Insufficient(more, capacity); lack != nil {
		return Verdict{Reason: corev1.PodReasonInfeasible, Message: fmt.Sprintf(
			"Node didn't have enough capacity: %s, requested: %d, capacity: %d", lack.Name,
			sizes.Amount(lack.Name, lack.Requested), sizes.Amount(lack.Name, lack.Capacity))}
	}
	if lack := used.Insufficient(more, capacity); lack != nil {
		return Verdict{Reason: corev1.PodReasonDeferred, Message: sizes.Lacks(lack)}
	}
	return Verdict{}
}

// compute returns the allocatable amounts of the resources that a resize changes: the Pod has all others already.
func compute(allocatable corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range sizes.Resized {
		out[name] = allocatable[name]
	}
	return out
}

func requests(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}
