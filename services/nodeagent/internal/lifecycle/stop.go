package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/seconds"
)

// MinimumGrace is the minimum time between the stop signal and the kill.
const MinimumGrace = 2 * time.Second

// defaultGrace is the grace period of a Pod that specifies none.
const defaultGrace = 30 * time.Second

// Grace returns the Pod's own termination grace period.
func Grace(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return seconds.AtLeastNone(*s)
	}
	return defaultGrace
}

// ProbeGrace returns the grace period for a container after a failed liveness or startup probe: the probe's own, or
// else the Pod's.
func ProbeGrace(pod *corev1.Pod, own *int64) time.Duration {
	if own != nil {
		return seconds.AtLeastNone(*own)
	}
	return Grace(pod)
}

// Termination is the end of a Pod under way. The time counts from when this agent began it: a restarted agent
// grants the full period again.
type Termination struct {
	BeganAt  time.Time
	Deadline time.Time
}

// Shorten returns the termination with the deadline moved forward to grace after its beginning, if that is earlier. A
// deadline never moves back. A nil termination begins now.
func (t *Termination) Shorten(now time.Time, grace time.Duration) *Termination {
	if t == nil {
		return &Termination{BeganAt: now, Deadline: now.Add(grace)}
	}
	if d := t.BeganAt.Add(grace); d.Before(t.Deadline) {
		return &Termination{BeganAt: t.BeganAt, Deadline: d}
	}
	return t
}

// KillAfter returns how long the runtime is to wait between the stop signal sent now and the kill: the time left
// until the deadline, but at least MinimumGrace, in whole seconds rounded up (the unit of the runtime).
func KillAfter(now, deadline time.Time) time.Duration {
	left := max(deadline.Sub(now), MinimumGrace)
	return (left + time.Second - 1).Truncate(time.Second)
}

// StopWave returns which of the live containers to stop now. entries are all of the Pod's containers in their
// order. Sidecars wait until all others have ended and then end one by one in reverse order; after the deadline,
// all end at once.
func StopWave(entries []Entry, alive map[string]bool, now, deadline time.Time) []string {
	if !now.Before(deadline) {
		return names(entries, alive, func(Entry) bool { return true })
	}
	if first := names(entries, alive, func(e Entry) bool { return e.Kind != Sidecar }); len(first) > 0 {
		return first
	}
	sidecars := names(entries, alive, func(e Entry) bool { return e.Kind == Sidecar })
	if len(sidecars) == 0 {
		return nil
	}
	return sidecars[len(sidecars)-1:]
}

func names(entries []Entry, alive map[string]bool, want func(Entry) bool) []string {
	var out []string
	for _, e := range entries {
		if alive[e.Spec.Name] && want(e) {
			out = append(out, e.Spec.Name)
		}
	}
	return out
}
