package podstate

import (
	"slices"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
)

// The outcome of a Pod that used up its activeDeadlineSeconds, as the API names it.
const (
	reasonDeadlineExceeded  = "DeadlineExceeded"
	messageDeadlineExceeded = "Pod was active on the node longer than the specified deadline"
)

// goal returns the Pod's goal, and the outcome if the Pod fails as a whole.
func (v *view) goal() (Goal, *Outcome) {
	outcome := v.outcome()
	switch {
	case v.in.Removed || podview.IsTerminating(v.pod):
		return Terminate, outcome
	case outcome != nil || podview.IsTerminal(v.pod) || v.completed():
		return Finish, outcome
	}
	return Run, nil
}

// outcome returns why the Pod fails as a whole; nil if it does not.
func (v *view) outcome() *Outcome {
	if v.in.Memory.Rejection != nil {
		return v.in.Memory.Rejection
	}
	if podview.IsTerminal(v.pod) || podview.IsTerminating(v.pod) || v.pod.Spec.ActiveDeadlineSeconds == nil {
		return nil
	}
	end := v.in.StartedAt.Add(seconds.Of(*v.pod.Spec.ActiveDeadlineSeconds))
	if v.in.Now.Before(end) {
		v.wake(end)
		return nil
	}
	return &Outcome{Reason: reasonDeadlineExceeded, Message: messageDeadlineExceeded}
}

// completed reports whether the containers have ended for good without being stopped.
func (v *view) completed() bool {
	return v.mainsDone() || v.initFailed() || v.lost()
}

// mainsDone reports whether every main container has ended and none is restarted.
func (v *view) mainsDone() bool {
	for _, e := range v.entries {
		if e.Kind == lifecycle.Main && !v.ended(e, v.latest(e.Spec.Name)) {
			return false
		}
	}
	return true
}

// initFailed reports whether an init container failed before the main containers started, and is not restarted.
func (v *view) initFailed() bool {
	if v.initialized() {
		return false
	}
	for _, e := range v.entries {
		c := v.inSandbox(e.Spec.Name)
		if e.Kind == lifecycle.Init && v.ended(e, c) && c.ExitCode != 0 {
			return true
		}
	}
	return false
}

// lost reports whether the sandbox has died under main containers that are never restarted.
func (v *view) lost() bool {
	began := func(e lifecycle.Entry) bool { return e.Kind != lifecycle.Ephemeral && v.latest(e.Spec.Name) != nil }
	return v.sandbox != nil && !v.sandbox.Ready && slices.ContainsFunc(v.entries, began) &&
		!slices.ContainsFunc(v.entries, func(e lifecycle.Entry) bool {
			return e.Kind == lifecycle.Main && podview.MayRestart(v.pod.Spec.RestartPolicy, e.Spec)
		})
}

// ended reports whether the container has ended for good: its newest instance has exited and no other will follow.
func (v *view) ended(e lifecycle.Entry, newest *observed.Container) bool {
	if newest == nil || newest.Live() || v.starting(e.Spec.Name) || v.cutShort(newest) ||
		v.in.Memory.Resize.Restarted[newest.ID] {
		return false
	}
	return !e.Restarts(v.pod, newest.ExitCode)
}

// cutShort reports whether an instance has ended without ever having started, although this agent knows of no
// failed start: an earlier agent died in the middle of the start, and the runtime gave up. Nothing has run, so
// nothing has failed.
func (v *view) cutShort(c *observed.Container) bool {
	_, failed := v.in.Memory.Faults[StartKey(c.Name)]
	return c.State == observed.Exited && c.StartedAt.IsZero() && !failed
}

// initialized reports whether the init containers are done in the present sandbox. A main container in it proves
// that, even if the record of an init container was lost.
func (v *view) initialized() bool {
	for _, e := range v.entries {
		if e.Kind == lifecycle.Main && v.inSandbox(e.Spec.Name) != nil {
			return true
		}
	}
	return false
}
