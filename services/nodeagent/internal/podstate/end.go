package podstate

import (
	"slices"
	"strings"
	"time"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
)

const reasonTerminating = "Killing"

// end brings a Pod down: containers in their order, then the sandbox, then what the Pod used. For Terminate it then
// removes the ended containers and the sandbox, once the API holds the final status, and deletes the object last,
// when nothing of the Pod is left on the node.
func (v *view) end() {
	grace := v.grace()
	if o := v.plan.Outcome; o != nil && o.Grace > 0 {
		grace = min(grace, o.Grace)
	}
	v.plan.Termination = v.in.Memory.Termination.Shorten(v.in.Now, grace)
	creating := v.cancelStarts(Prepare, CreateSandbox, StartContainer, RunPostStart, ResizePod)
	if v.stopContainers() || creating || v.removeCutShort() {
		return
	}
	if v.stopSandboxes() {
		return
	}
	v.plan.Stopped = true
	if !v.release() || v.plan.Goal != Terminate {
		return
	}
	// The API must know how the containers ended before the last trace of them is removed.
	if !v.in.Removed && !podview.IsTerminal(v.pod) {
		return
	}
	if v.removeAll() {
		return
	}
	if len(v.in.Ops) > 0 {
		return
	}
	if !v.in.Removed {
		v.act(Action{Key: Key{Kind: DeletePod}})
		return
	}
	v.plan.Gone = true
}

// grace returns the current grace period. A Pod whose object is gone gets the minimum.
func (v *view) grace() time.Duration {
	switch {
	case v.in.Removed:
		return lifecycle.MinimumGrace
	case v.pod.DeletionGracePeriodSeconds != nil && podview.IsTerminating(v.pod):
		return seconds.AtLeastNone(*v.pod.DeletionGracePeriodSeconds)
	}
	return lifecycle.Grace(v.pod)
}

// cancelStops cancels the stops of instances that have ended meanwhile: a preStop hook might take long for nothing.
func (v *view) cancelStops() {
	for key := range v.in.Ops {
		if key.Kind != StopContainer {
			continue
		}
		if c := v.in.Observed.ByID(key.Object); c == nil || !c.Live() {
			v.plan.Cancel = append(v.plan.Cancel, key)
		}
	}
}

// cancelStarts cancels operations of these kinds, which would bring up more of the Pod, and reports whether any is
// in flight.
func (v *view) cancelStarts(kinds ...Kind) bool {
	var starting []Key
	for key := range v.in.Ops {
		if slices.Contains(kinds, key.Kind) {
			starting = append(starting, key)
		}
	}
	v.plan.Cancel = append(v.plan.Cancel, starting...)
	slices.SortFunc(v.plan.Cancel, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return len(starting) > 0
}

// stopContainers stops the next wave of containers and reports whether any may still be alive.
func (v *view) stopContainers() bool {
	alive, unknown := map[string]bool{}, []*observed.Container(nil)
	for i := range v.in.Observed.Containers {
		c := &v.in.Observed.Containers[i]
		if !v.lives(c) {
			continue
		}
		if _, known := v.byName[c.Name]; known {
			alive[c.Name] = true
		} else {
			unknown = append(unknown, c)
		}
	}
	deadline := v.plan.Termination.Deadline
	for _, name := range lifecycle.StopWave(v.entries, alive, v.in.Now, deadline) {
		for _, c := range v.live(name) {
			v.endContainer(c, deadline)
		}
	}
	for _, c := range unknown {
		v.endContainer(c, deadline)
	}
	if len(alive) > 0 && v.in.Now.Before(deadline) {
		v.wake(deadline)
	}
	return len(alive)+len(unknown) > 0
}

// endContainer stops an instance, unless a start that is being cancelled still works on it.
func (v *view) endContainer(c *observed.Container, deadline time.Time) {
	if v.starting(c.Name) && c.State == observed.Created {
		return
	}
	v.discard(c, deadline, StopReason{Reason: reasonTerminating, Message: "Stopping container " + c.Name})
}

// removeCutShort removes what interrupted starts have left, and reports whether any of it remains. A runtime may
// find the remains of an instance only while its sandbox exists.
func (v *view) removeCutShort() bool {
	left := false
	for i := range v.in.Observed.Containers {
		if c := &v.in.Observed.Containers[i]; v.cutShort(c) && !v.stays(c) {
			left = true
			v.remove(c)
		}
	}
	return left
}

// stopSandboxes frees the network of every sandbox and reports whether one is still to be stopped.
func (v *view) stopSandboxes() bool {
	left := false
	for i := range v.in.Observed.Sandboxes {
		s := &v.in.Observed.Sandboxes[i]
		if s.Ready || !v.in.Memory.SandboxesStopped[s.ID] {
			left = true
			v.act(Action{Key: Key{Kind: StopSandbox, Object: s.ID}, SandboxID: s.ID})
		}
	}
	return left
}

// removeAll removes sandboxes with their containers, and containers without one; it reports whether anything was
// left.
func (v *view) removeAll() bool {
	home := map[string]bool{}
	for i := range v.in.Observed.Sandboxes {
		id := v.in.Observed.Sandboxes[i].ID
		home[id] = true
		key := Key{Kind: RemoveSandbox, Object: id}
		v.act(Action{Key: key, SandboxID: id, Force: v.failed(key)})
	}
	for i := range v.in.Observed.Containers {
		if c := &v.in.Observed.Containers[i]; !home[c.SandboxID] {
			v.remove(c)
		}
	}
	return !v.in.Observed.Empty()
}
