package podstate

import (
	"fmt"
	"time"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
)

// Reasons for which an instance of a running Pod is stopped or waits.
const (
	reasonSandboxChanged = "SandboxChanged"
	reasonUnknown        = "ContainerStatusUnknown"
	reasonChanged        = "ContainerChanged"
)

// run brings a Pod up and keeps it up: first the preparation steps, then its sandbox, then the containers in their
// order.
func (v *view) run() {
	v.plan.Resizing = v.resizing()
	if v.restartAll() || v.held() || !v.prepare() {
		return
	}
	if !v.resize() {
		v.refresh()
	}
	if v.sandbox == nil || !v.sandbox.Ready {
		v.replaceSandbox()
		return
	}
	if v.strays() {
		return
	}
	if !v.backsOff() && v.inits() {
		for _, e := range v.entries {
			if e.Kind == lifecycle.Main {
				v.drive(e)
			}
		}
	}
	for _, e := range v.entries {
		if e.Kind == lifecycle.Ephemeral {
			v.drive(e)
		}
	}
}

// held reports whether the Pod must not start yet, and shows why.
func (v *view) held() bool {
	if v.in.Hold == "" {
		return false
	}
	for _, e := range v.entries {
		v.plan.Waiting[e.Spec.Name] = Waiting{Reason: ContainerCreating, Message: v.in.Hold}
	}
	return true
}

// replaceSandbox creates the first sandbox, or the next one once nothing in the old ones is alive.
func (v *view) replaceSandbox() {
	if v.busy(CreateSandbox, StartContainer, RunPostStart) || v.strays() {
		return
	}
	attempt, stopped := uint32(0), true
	for i := range v.in.Observed.Sandboxes {
		s := &v.in.Observed.Sandboxes[i]
		attempt = max(attempt, s.Attempt+1)
		if !v.in.Memory.SandboxesStopped[s.ID] {
			stopped = false
			v.act(Action{Key: Key{Kind: StopSandbox, Object: s.ID}, SandboxID: s.ID})
		}
	}
	if stopped {
		v.act(Action{Key: Key{Kind: CreateSandbox}, Attempt: attempt})
	}
}

// strays stops instances outside the present ready sandbox, and reports whether any has to be waited for.
func (v *view) strays() bool {
	found := false
	deadline := v.in.Now.Add(lifecycle.Grace(v.pod))
	for i := range v.in.Observed.Containers {
		c := &v.in.Observed.Containers[i]
		at := v.sandbox != nil && v.sandbox.Ready && c.SandboxID == v.sandbox.ID
		if c.Live() && !at {
			waits := v.discard(c, deadline, StopReason{Reason: reasonSandboxChanged,
				Message: "Pod sandbox changed, it will be killed and re-created."})
			found = found || waits
		}
	}
	return found
}

// inits drives init containers and sidecars, and reports whether the main containers may start.
func (v *view) inits() bool {
	initialized := v.initialized()
	for i, e := range v.entries {
		switch {
		case e.Kind == lifecycle.Init && !initialized:
			if c := v.inSandbox(e.Spec.Name); c != nil && c.State == observed.Exited && c.ExitCode == 0 {
				continue
			}
			v.drive(e)
			return false
		case e.Kind == lifecycle.Sidecar:
			v.drive(e)
			if !initialized && !v.started(e) && !v.passed(i) {
				return false
			}
		}
	}
	return true
}

// passed reports whether a container after the i-th has been started in this sandbox: the i-th need not be waited
// for.
func (v *view) passed(i int) bool {
	for _, e := range v.entries[i+1:] {
		if e.Kind != lifecycle.Ephemeral && v.inSandbox(e.Spec.Name) != nil {
			return true
		}
	}
	return false
}

// started reports whether a sidecar is up: it runs, its hook is done and its startup probe has succeeded.
func (v *view) started(e lifecycle.Entry) bool {
	c := v.inSandbox(e.Spec.Name)
	return c != nil && c.State == observed.Running && !v.hookPending(e, c) &&
		(e.Spec.StartupProbe == nil || v.in.Probes[c.ID].Started)
}

// hookPending reports whether the postStart hook of a running instance has yet to finish.
func (v *view) hookPending(e lifecycle.Entry, c *observed.Container) bool {
	return e.Spec.Lifecycle != nil && e.Spec.Lifecycle.PostStart != nil && !v.in.Memory.Hooked[c.ID]
}

// hooking lists running instances whose postStart hook has not finished, for every goal: a hook that is called
// off does not finish.
func (v *view) hooking() {
	for i := range v.in.Observed.Containers {
		c := &v.in.Observed.Containers[i]
		if e, known := v.byName[c.Name]; known && c.State == observed.Running && v.hookPending(e, c) {
			v.plan.Hooking[c.ID] = true
		}
	}
}

// drive brings one container to its desired state in the present sandbox.
func (v *view) drive(e lifecycle.Entry) {
	name := e.Spec.Name
	c := v.inSandbox(name)
	if v.starting(name) {
		return
	}
	switch {
	case c == nil:
		v.start(e, v.in.Observed.Latest(name))
	case (c.State == observed.Created || c.State == observed.Unknown) && v.lives(c):
		// A start that was cut short: how far it came is unknown, so a new instance replaces this one.
		v.discard(c, v.in.Now.Add(lifecycle.Grace(v.pod)), StopReason{Reason: reasonUnknown,
			Message: "Container is in unknown state, try killing it before restart."})
	case v.cutShort(c) && !v.stays(c):
		v.remove(c)
	case c.State == observed.Running:
		v.keep(e, c)
	default:
		v.start(e, c)
	}
}

// keep checks a running instance.
func (v *view) keep(e lifecycle.Entry, c *observed.Container) {
	if why := v.mustStop(e, c); why != nil {
		v.stop(c, v.in.Now.Add(why.Grace), *why)
		return
	}
	if v.hookPending(e, c) {
		v.act(Action{Key: Key{Kind: RunPostStart, Object: c.ID}, ID: c.ID, SandboxID: c.SandboxID, Container: e})
	}
}

// mustStop returns why a running instance must be stopped; nil if it may run on.
func (v *view) mustStop(e lifecycle.Entry, c *observed.Container) *StopReason {
	if why, ok := v.in.Memory.MustStop[c.ID]; ok {
		return &why
	}
	if p, ok := v.in.Probes[c.ID]; ok && p.MustStop != nil {
		return p.MustStop
	}
	if v.restartsToResize(e, c) && v.isActuated() {
		return &StopReason{Reason: ReasonResize, Grace: lifecycle.Grace(v.pod),
			Message: fmt.Sprintf("Container %s resize requires restart", c.Name)}
	}
	if (e.Kind == lifecycle.Main || e.Kind == lifecycle.Sidecar) && c.Image != "" && c.Image != e.Spec.Image {
		return &StopReason{Reason: reasonChanged, Grace: lifecycle.Grace(v.pod),
			Message: fmt.Sprintf("Container %s definition changed, will be restarted", c.Name)}
	}
	return nil
}

// start creates the next instance of a container after prev, the newest one so far (nil for the first), if its
// restart policy and back-off allow it and no other instance is alive.
func (v *view) start(e lifecycle.Entry, prev *observed.Container) {
	name := e.Spec.Name
	if len(v.live(name)) > 0 || !v.hasRoom() {
		return
	}
	a := Action{Key: StartKey(name), SandboxID: v.sandbox.ID, Container: e, Attempt: v.nextAttempt(e, prev)}
	if prev != nil && !v.follows(e, prev, &a) {
		return
	}
	if !v.faultDelayOver(a.Key, name) {
		return
	}
	v.plan.Actions = append(v.plan.Actions, a)
}

// follows reports whether an instance may follow prev now, and sets in a where the container's back-off restarts.
func (v *view) follows(e lifecycle.Entry, prev *observed.Container, a *Action) bool {
	anew := v.in.Memory.RestartAll.Earlier(prev)
	rerun := anew || e.Kind == lifecycle.Init && prev.SandboxID != v.sandbox.ID
	resized := v.in.Memory.Resize.Restarted[prev.ID]
	switch {
	case !rerun && !resized && prev.State == observed.Exited && !v.cutShort(prev) &&
		!e.Restarts(v.pod, prev.ExitCode):
		return false
	case resized || anew && ranLong(prev):
		a.Streak = &prev.Attempt
		if anew && v.bystander(v.in.Memory.RestartAll, e, prev) {
			a.Streak = &a.Attempt
		}
		return true
	default:
		return rerun || v.crashDelayOver(e, prev, a)
	}
}

// crashDelayOver reports whether the back-off after prev has passed. A long run restarts the back-off.
func (v *view) crashDelayOver(e lifecycle.Entry, prev *observed.Container, a *Action) bool {
	restarts := int(prev.Attempt) - int(v.in.Memory.Streaks[prev.Name])
	if ranLong(prev) {
		restarts, a.Streak = 0, &prev.Attempt
	}
	delay := lifecycle.CrashDelay(restarts)
	if due := endOf(prev).Add(delay); due.After(v.in.Now) {
		v.wake(due)
		v.plan.Waiting[e.Spec.Name] = Waiting{Reason: CrashLoopBackOff, Message: fmt.Sprintf(
			"back-off %s restarting failed container=%s pod=%s_%s(%s)", delay, e.Spec.Name, v.pod.Name, v.pod.Namespace,
			v.pod.UID)}
		return false
	}
	return true
}

// endOf returns when an instance ended.
func endOf(c *observed.Container) time.Time {
	if c.FinishedAt.IsZero() {
		return c.CreatedAt
	}
	return c.FinishedAt
}

// ranLong reports whether an instance ran so long that its container's back-off restarts.
func ranLong(c *observed.Container) bool {
	return !c.StartedAt.IsZero() && endOf(c).Sub(c.StartedAt) >= lifecycle.ResetAfter
}

// nextAttempt returns the attempt of the instance after prev. If the runtime has lost all instances, the API's
// restart count continues. Both may be behind the last restart of all containers: an instance that was being
// created then may have disappeared without having started.
func (v *view) nextAttempt(e lifecycle.Entry, prev *observed.Container) uint32 {
	least := uint32(0)
	if r := v.in.Memory.RestartAll; r != nil {
		if last, known := r.Last[e.Spec.Name]; known {
			least = last + 1
		}
	}
	if prev != nil {
		return max(least, prev.Attempt+1)
	}
	for _, statuses := range statusLists(v.pod) {
		for i := range statuses {
			if s := &statuses[i]; s.Name == e.Spec.Name && s.ContainerID != "" {
				return max(least, uint32(max(s.RestartCount, 0))+1)
			}
		}
	}
	return least
}
