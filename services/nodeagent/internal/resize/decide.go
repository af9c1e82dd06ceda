// Package resize decides which resizes of its Pods a node takes on, and what one that was taken on waits for. It is
// pure.
package resize

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"keelson.dev/kit/noderesources"
	"keelson.dev/services/nodeagent/internal/admit"
	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Candidate is a Pod that asks for another size than it has.
type Candidate struct {
	// Given is the Pod at the size that it has, Wanted at that which it asks for.
	Given, Wanted *corev1.Pod
	// Since is when it was first put off; zero for a new one.
	Since time.Time
}

// Input is all that the decision depends on.
type Input struct {
	Candidates []Candidate
	// Others are the node's further Pods, at the sizes that they have.
	Others      []*corev1.Pod
	Allocatable corev1.ResourceList
}

// Verdict is the answer to a candidate. Without a reason the resize is granted.
type Verdict struct {
	// Reason is that of the condition PodResizePending.
	Reason  string
	Message string
}

// Granted reports whether the Pod gets the size that it asks for.
func (v Verdict) Granted() bool { return v.Reason == "" }

// Decide answers the candidates one after the other: what one is given counts for those after it.
func Decide(in Input) map[types.UID]Verdict {
	candidates := slices.Clone(in.Candidates)
	slices.SortStableFunc(candidates, inOrder)
	var used noderesources.Usage
	for _, pod := range in.Others {
		used.Add(requests(pod))
	}
	for i := range candidates {
		used.Add(requests(candidates[i].Given))
	}
	out := make(map[types.UID]Verdict, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		used.Remove(requests(c.Given))
		verdict := decide(c, used, in.Allocatable)
		if verdict.Granted() {
			used.Add(requests(c.Wanted))
		} else {
			used.Add(requests(c.Given))
		}
		out[c.Given.UID] = verdict
	}
	return out
}

// inOrder puts first what takes no more than before, then Pods by priority, by class, and by how long they wait. One
// that has not waited yet comes last.
func inOrder(a, b Candidate) int {
	since := func(c Candidate) int64 {
		if c.Since.IsZero() {
			return 1<<63 - 1
		}
		return c.Since.UnixNano()
	}
	return cmp.Or(cmp.Compare(grows(a), grows(b)), cmp.Compare(priority(b), priority(a)),
		cmp.Compare(class(a), class(b)), cmp.Compare(since(a), since(b)), cmp.Compare(a.Given.UID, b.Given.UID))
}

// grows is 1 for a Pod that asks for more than it has.
func grows(c Candidate) int {
	given, wanted := requests(c.Given), requests(c.Wanted)
	for _, name := range sizes.Resized {
		more := wanted[name]
		if more.Cmp(given[name]) > 0 {
			return 1
		}
	}
	return 0
}

func priority(c Candidate) int32 {
	if p := c.Given.Spec.Priority; p != nil {
		return *p
	}
	return 0
}

func class(c Candidate) int {
	return slices.Index([]corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort},
		qos.Class(c.Given))
}

// decide answers one candidate. used is what all other Pods request. A resize that asks for more of nothing is always
// granted: the node has had room for it.
func decide(c *Candidate, used noderesources.Usage, allocatable corev1.ResourceList) Verdict {
	given, wanted := requests(c.Given), requests(c.Wanted)
	more := corev1.ResourceList{}
	for _, name := range sizes.Resized {
		if quantity := wanted[name]; quantity.Cmp(given[name]) > 0 {
			more[name] = quantity
		}
	}
	if lack := (noderesources.Usage{}).Insufficient(more, compute(allocatable)); lack != nil {
		return Verdict{Reason: corev1.PodReasonInfeasible, Message: fmt.Sprintf(
			"Node didn't have enough capacity: %s, requested: %d, capacity: %d", lack.Name,
			admit.Amount(lack.Name, lack.Requested), admit.Amount(lack.Name, lack.Capacity))}
	}
	if lack := used.Insufficient(more, compute(allocatable)); lack != nil {
		return Verdict{Reason: corev1.PodReasonDeferred, Message: admit.Lacks(lack)}
	}
	return Verdict{}
}

// compute is the part of what is allocatable that a resize can lack: the Pod has its place already.
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
