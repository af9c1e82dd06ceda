package pressure

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/qos"
)

// Usage is how much a Pod uses of what the node is short of: bytes, inodes or process IDs.
type Usage struct {
	Pod int64
	// Containers holds the containers' own shares by name, if they are known.
	Containers map[string]int64
}

// Pod is a Pod of the node.
type Pod struct {
	*corev1.Pod
	// Static Pods come from files of the node.
	Static bool
	// Ending Pods are failing as a whole already, or the API has forgotten them; Ended ones hold nothing of the node
	// any more.
	Ending, Ended bool
	// Running are its running instances, the newest of each container first.
	Running []observed.Container
	Usage   Usage
}

// evictable reports whether a Pod may be evicted. Critical Pods never are: the node cannot do without them.
func (p *Pod) evictable() bool {
	return !p.Ending && !p.Ended && !podview.IsTerminal(p.Pod) && !qos.IsCritical(p.Pod, p.Static)
}

// request returns how much of the starved resource the Pod requests.
func (p *Pod) request(what starved) int64 {
	if what != memory && what != storage {
		return 0
	}
	requests := resource.PodRequests(p.Pod, resource.PodResourcesOptions{})
	quantity := requests[corev1.ResourceName(what)]
	return quantity.Value()
}

func (p *Pod) priority() int32 {
	return ptr.Deref(p.Spec.Priority, 0)
}

// Eviction ends a Pod for the node's sake.
type Eviction struct {
	Pod *Pod
	Why podstate.Outcome
}

// leastGrace is the grace for a hard threshold, and the minimum for a soft one. A victim that has not ended cleanUp
// after its grace is no longer waited for.
const (
	leastGrace = time.Second
	cleanUp    = 30 * time.Second
)

// Evict chooses at most one Pod whose end relieves a threshold; none while the previous victim is still ending. The
// returned State is to be remembered.
func Evict(t Threshold, level Level, pods []Pod, in Input) (*Eviction, State) {
	next := in.State
	if waits(next.victim, pods, in.Now) {
		return nil, next
	}
	candidates := candidatesOf(t.Signal.starves(), pods)
	if len(candidates) == 0 {
		return nil, next
	}
	chosen := candidates[0]
	grace := graceOf(t, chosen.Pod, in.Rules.MaxPodGrace)
	next.victim = victim{uid: chosen.UID, until: in.Now.Add(grace + cleanUp)}
	return &Eviction{Pod: &chosen, Why: podstate.Outcome{
		Reason: podstate.ReasonEvicted, Message: message(t, level, &chosen), Grace: grace, Disruption: true,
	}}, next
}

// waits reports whether the previous victim still holds what its end is to relieve.
func waits(v victim, pods []Pod, now time.Time) bool {
	return now.Before(v.until) && slices.ContainsFunc(pods, func(p Pod) bool { return p.UID == v.uid && !p.Ended })
}

// candidatesOf returns the Pods that may be evicted, in order: Pods that use more than they requested before those
// that do not, then by lower priority, then by usage beyond the request. Process IDs cannot be requested: only
// priority and usage count.
func candidatesOf(what starved, pods []Pod) []Pod {
	var out []Pod
	for _, p := range pods {
		if p.evictable() {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Pod) int {
		beyondA, beyondB := a.Usage.Pod-a.request(what), b.Usage.Pod-b.request(what)
		exceeds := 0
		if what != pids {
			exceeds = rank(beyondA <= 0) - rank(beyondB <= 0)
		}
		return cmp.Or(exceeds, cmp.Compare(a.priority(), b.priority()), cmp.Compare(beyondB, beyondA),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out
}

// graceOf returns how long the Pod may take to stop.
func graceOf(t Threshold, pod *corev1.Pod, most time.Duration) time.Duration {
	if !t.Soft {
		return leastGrace
	}
	grace := most
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, seconds.Of(*own))
	}
	return max(grace, leastGrace)
}
