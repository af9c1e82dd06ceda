package resize

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Allocation is what the node has allocated a Pod, and what the Pod desires.
type Allocation struct {
	// Allocated is the newest version of the Pod at the size that the node has allocated it, Desired the API's version.
	// Their sizes are equal unless a resize is to be decided on, or is pending.
	Allocated, Desired *corev1.Pod
	// Pending is the resize that is deferred or infeasible; nil if none is.
	Pending *Pending
}

// Pending is a resize that is deferred or infeasible, with the last verdict on it.
type Pending struct {
	Verdict
	Since time.Time
}

// Restore returns the allocation of a Pod that is new to this agent: as an earlier agent recorded it, or as that agent
// reported it to the API. A Pod that never changed has its desired size.
func Restore(pod *corev1.Pod, noted *sizes.Size) Allocation {
	a := Allocation{Allocated: pod, Desired: pod}
	switch {
	case noted != nil:
		a.Allocated = noted.Apply(pod)
	case pod.Status.StartTime != nil && pod.Generation > 1:
		a.Allocated = sizes.Reported(pod).Apply(pod)
	}
	if c := podview.Condition(pod, corev1.PodResizePending); c != nil {
		a.Pending = &Pending{Verdict{c.Reason, c.Message}, c.LastTransitionTime.Time}
	}
	return a
}

// Accept takes in a version of the Pod, which keeps the allocated size until another one is granted. It reports whether
// a resize is to be decided on.
func (a *Allocation) Accept(pod *corev1.Pod) bool {
	allocated := a.Allocated
	a.Desired = pod
	if sizes.Same(allocated, pod) {
		a.Allocated, a.Pending = pod, nil
		return false
	}
	a.Allocated = sizes.Of(allocated).Apply(pod)
	return true
}

// Candidate returns the resize that is to be decided on.
func (a *Allocation) Candidate() Candidate {
	c := Candidate{Allocated: a.Allocated, Desired: a.Desired}
	if a.Pending != nil {
		c.PendingSince = a.Pending.Since
	}
	return c
}

// Answer takes in the verdict on the resize, and reports whether it is new.
func (a *Allocation) Answer(v Verdict, now time.Time) bool {
	switch {
	case v.Granted():
		a.Allocated, a.Pending = a.Desired, nil
	case a.Pending == nil:
		a.Pending = &Pending{v, now}
	case a.Pending.Verdict != v:
		a.Pending = &Pending{v, a.Pending.Since}
	default:
		return false
	}
	return true
}
