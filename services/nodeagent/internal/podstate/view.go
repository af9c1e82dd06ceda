package podstate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
)

// view is the input with its indices, and the plan under construction.
type view struct {
	in      Input
	pod     *corev1.Pod
	entries []lifecycle.Entry
	byName  map[string]lifecycle.Entry
	// sandbox is the newest one; nil if the Pod has none.
	sandbox *observed.Sandbox
	plan    Plan
}

func newView(in Input) *view {
	v := &view{in: in, pod: in.Pod, entries: lifecycle.Entries(in.Pod), sandbox: in.Observed.Sandbox()}
	v.byName = make(map[string]lifecycle.Entry, len(v.entries))
	for _, e := range v.entries {
		v.byName[e.Spec.Name] = e
	}
	v.plan.Waiting = map[string]Waiting{}
	v.plan.Hooking = map[string]bool{}
	return v
}

// latest returns the newest instance of a container, or nil. It ignores instances from before a restart of all
// containers.
func (v *view) latest(name string) *observed.Container {
	if c := v.in.Observed.Latest(name); c != nil && !v.in.Memory.RestartAll.Earlier(c) {
		return c
	}
	return nil
}

// inSandbox returns the newest instance of a container in the newest sandbox, or nil. It ignores instances from
// before a restart of all containers.
func (v *view) inSandbox(name string) *observed.Container {
	if v.sandbox == nil {
		return nil
	}
	for i := range v.in.Observed.Containers {
		if c := &v.in.Observed.Containers[i]; c.Name == name && c.SandboxID == v.sandbox.ID &&
			!v.in.Memory.RestartAll.Earlier(c) {
			return c
		}
	}
	return nil
}

// lives reports whether an instance may have a process. One that was created and could not be removed has none.
func (v *view) lives(c *observed.Container) bool {
	return c.Live() && (c.State != observed.Created || !v.stays(c))
}

// live returns the instances of a container that may have a process.
func (v *view) live(name string) []*observed.Container {
	var out []*observed.Container
	for i := range v.in.Observed.Containers {
		if c := &v.in.Observed.Containers[i]; c.Name == name && v.lives(c) {
			out = append(out, c)
		}
	}
	return out
}

// busy reports whether an operation of one of the kinds is in flight.
func (v *view) busy(kinds ...Kind) bool {
	for key := range v.in.Ops {
		if slices.Contains(kinds, key.Kind) {
			return true
		}
	}
	return false
}

// starting reports whether a start of the container is in flight.
func (v *view) starting(container string) bool {
	_, inFlight := v.in.Ops[StartKey(container)]
	return inFlight
}

// act adds an action unless its operation is in flight or waits for its back-off after a failure.
func (v *view) act(a Action) {
	if _, inFlight := v.in.Ops[a.Key]; inFlight || !v.due(a.Key, lifecycle.StepDelay) {
		return
	}
	v.plan.Actions = append(v.plan.Actions, a)
}

// due reports whether an operation may be tried again after its last failure; if not, the plan wakes when it may.
func (v *view) due(key Key, delay func(int) time.Duration) bool {
	fault, failed := v.in.Memory.Faults[key]
	if !failed {
		return true
	}
	at := fault.At.Add(delay(fault.Count))
	if at.After(v.in.Now) {
		v.wake(at)
		return false
	}
	return true
}

// wake makes the plan wake at t, or earlier if another wake is earlier.
func (v *view) wake(t time.Time) {
	if v.plan.Wake.IsZero() || t.Before(v.plan.Wake) {
		v.plan.Wake = t
	}
}

// stop ends one instance by the deadline. Only an earlier deadline replaces an operation in flight.
func (v *view) stop(c *observed.Container, deadline time.Time, why StopReason) {
	key := Key{Kind: StopContainer, Object: c.ID}
	if op, inFlight := v.in.Ops[key]; inFlight {
		if !deadline.Before(op.Deadline) {
			return
		}
	} else if !v.due(key, lifecycle.StepDelay) {
		return
	}
	e := v.byName[c.Name]
	hook := e.Spec != nil && e.Spec.Lifecycle != nil && e.Spec.Lifecycle.PreStop != nil
	v.plan.Actions = append(v.plan.Actions, Action{
		Key: key, ID: c.ID, SandboxID: c.SandboxID, Container: e, Deadline: deadline,
		PreStop: hook && c.State == observed.Running && deadline.After(v.in.Now),
		Force:   v.failed(key) && !deadline.After(v.in.Now),
		Reason:  why.Reason, Message: why.Message,
	})
}

// discard stops an instance, or removes it if it has never started, and reports whether it has to be waited for.
func (v *view) discard(c *observed.Container, deadline time.Time, why StopReason) bool {
	if c.State == observed.Created {
		v.remove(c)
	} else {
		v.stop(c, deadline, why)
	}
	return v.lives(c)
}

// remove removes an instance that has no process.
func (v *view) remove(c *observed.Container) {
	key := removeKey(c)
	v.act(Action{Key: key, ID: c.ID, SandboxID: c.SandboxID, Container: v.byName[c.Name],
		Force: v.failed(key) || v.cutShort(c)})
}

func removeKey(c *observed.Container) Key { return Key{Kind: RemoveContainer, Object: c.ID} }

// maxRemovals is how often the removal of an instance is tried before the Pod goes on without it. Removals of
// instances from before a restart of all containers are still retried after that.
const maxRemovals = 3

// stays reports whether the removal of an instance has failed often enough. Its processes were killed each time.
func (v *view) stays(c *observed.Container) bool {
	return v.in.Memory.Faults[removeKey(c)].Count >= maxRemovals
}

// failed reports whether the last try of an operation failed.
func (v *view) failed(key Key) bool {
	_, failed := v.in.Memory.Faults[key]
	return failed
}
