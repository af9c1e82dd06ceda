// Package rank says which Pods of a set go first when there are too many. It is pure.
//
//keelson:decision
package rank

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// Pod is what the order depends on.
type Pod struct {
	Name, Namespace string
	UID             types.UID
	// Node is empty for a Pod that no node was found for.
	Node string
	// Phase is the Pod's phase.
	Phase corev1.PodPhase
	// Ready and ReadySince describe the condition Ready.
	Ready      bool
	ReadySince time.Time
	// Cost is the value of the annotation controller.kubernetes.io/pod-deletion-cost, 0 without one.
	Cost int32
	// Restarts is the highest restart count among the app containers.
	Restarts int32
	// Created is when the Pod was created.
	Created time.Time
	// Colocated is how many replicas the Pod's node has; the caller counts them.
	Colocated int
}

// Of reads a Pod. Colocated is left at 0.
func Of(pod *corev1.Pod) Pod {
	ranked := Pod{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, Node: pod.Spec.NodeName, Phase: pod.Status.Phase,
		Cost: cost(pod), Restarts: restarts(pod), Created: pod.CreationTimestamp.Time,
	}
	if since, ready := podview.AvailableAt(pod, 0); ready {
		ranked.Ready, ranked.ReadySince = true, since
	}
	return ranked
}

// First returns the n Pods to remove, the first to go first. The slice that is given is left alone.
func First(pods []Pod, n int, now time.Time) []Pod {
	n = min(n, len(pods))
	if n <= 0 {
		return nil
	}
	// The heap keeps the n best so far with the last to go on top: most Pods of a large set cost one comparison.
	chosen := &lastOnTop{pods: make([]Pod, 0, n), now: now}
	for i := range pods {
		if len(chosen.pods) < n {
			heap.Push(chosen, pods[i])
		} else if before(&pods[i], &chosen.pods[0], now) {
			chosen.pods[0] = pods[i]
			heap.Fix(chosen, 0)
		}
	}
	slices.SortFunc(chosen.pods, func(a, b Pod) int { return compare(&a, &b, now) })
	return chosen.pods
}

// before reports whether a goes before b.
func before(a, b *Pod, now time.Time) bool { return compare(a, b, now) < 0 }

// compare is negative when a goes before b. It is a total order: the UID, which is random, decides between equals.
func compare(a, b *Pod, now time.Time) int {
	if c := compareUse(a, b); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.Cost, b.Cost),
		cmp.Compare(b.Colocated, a.Colocated),
		compareReadiness(a, b, now),
		cmp.Compare(b.Restarts, a.Restarts),
		cmp.Compare(ageBucket(a.Created, now), ageBucket(b.Created, now)),
		cmp.Compare(a.UID, b.UID),
	)
}

// compareUse orders Pods that serve no requests first: without a node, pending, not ready.
func compareUse(a, b *Pod) int {
	return cmp.Or(
		cmp.Compare(toInt(a.Node != ""), toInt(b.Node != "")),
		cmp.Compare(phaseOrder(a.Phase), phaseOrder(b.Phase)),
		cmp.Compare(toInt(a.Ready), toInt(b.Ready)),
	)
}

// compareReadiness orders Pods of which both are ready or neither is.
func compareReadiness(a, b *Pod, now time.Time) int {
	if !a.Ready {
		return 0
	}
	return cmp.Compare(ageBucket(a.ReadySince, now), ageBucket(b.ReadySince, now))
}

// ageBucket is the integer logarithm of an age: what is about equally old is equal. A time that is missing or lies
// ahead counts as newest.
func ageBucket(t, now time.Time) int {
	age := now.Sub(t)
	if t.IsZero() || age <= 0 {
		return -1
	}
	return bits.Len64(uint64(age))
}

func phaseOrder(phase corev1.PodPhase) int {
	switch phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cost reads the deletion cost as the apiserver allows it to be written; anything else counts as 0.
func cost(pod *corev1.Pod) int32 {
	text, ok := pod.Annotations[corev1.PodDeletionCost]
	if !ok {
		return 0
	}
	value, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(value)
}

func restarts(pod *corev1.Pod) int32 {
	var highest int32
	for i := range pod.Status.ContainerStatuses {
		highest = max(highest, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return highest
}

// lastOnTop is a heap with the Pod that goes last on top.
type lastOnTop struct {
	pods []Pod
	now  time.Time
}

func (h *lastOnTop) Len() int           { return len(h.pods) }
func (h *lastOnTop) Less(i, j int) bool { return before(&h.pods[j], &h.pods[i], h.now) }
func (h *lastOnTop) Swap(i, j int)      { h.pods[i], h.pods[j] = h.pods[j], h.pods[i] }
func (h *lastOnTop) Push(x any)         { h.pods = append(h.pods, x.(Pod)) }

// Pop is there for heap.Interface: nothing is taken off the heap.
func (h *lastOnTop) Pop() any { panic("nothing is taken off this heap") }
