package podworker

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// View is what a worker does, for people and other parts of the agent. What it points to must not be changed.
type View struct {
	Pod     *corev1.Pod
	Removed bool
	// At is when Plan was decided; both are zero before the first pass.
	At     time.Time
	Plan   podstate.Plan
	Faults map[podstate.Key]podstate.Fault
	// Ops are the operations under way, in readable form.
	Ops []string
	// Containers are the running instances; States counts all instances of the runtime by state. Sandbox means that a
	// sandbox runs.
	Containers []observed.Container
	States     map[observed.ContainerState]int
	Sandbox    bool
}

// show publishes in the view what the worker has just decided.
func (w *worker) show(now time.Time, plan podstate.Plan) {
	view := View{Pod: w.pod, Removed: w.removed, At: now, Plan: plan, Faults: maps.Clone(w.memory.Faults),
		States:  make(map[observed.ContainerState]int, 1),
		Sandbox: slices.ContainsFunc(w.seen.Sandboxes, func(s observed.Sandbox) bool { return s.Ready })}
	for key := range w.ops {
		view.Ops = append(view.Ops, key.String())
	}
	slices.Sort(view.Ops)
	for _, c := range w.seen.Containers {
		view.States[c.State]++
		if c.State == observed.Running {
			view.Containers = append(view.Containers, c)
		}
	}
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	stopped := plan.Stopped && !w.updates.view.Plan.Stopped
	w.updates.view = view
	if stopped {
		if w.config.Stopped != nil {
			w.config.Stopped(w.uid)
		}
		w.pool.freeLocked(nameOf(w.pod))
	}
}

// View returns what the worker of a Pod does. Of several Pods of a name it prefers the one that the API still has.
func (p *Pool) View(namespace, name string) (View, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *worker
	for _, w := range p.workers {
		if w.updates.Allocated.Namespace == namespace && w.updates.Allocated.Name == name &&
			(found == nil || found.updates.removed) {
			found = w
		}
	}
	if found == nil {
		return View{}, false
	}
	return found.updates.seen(), true
}

// seen returns the view with the newest version of the Pod.
func (u *updates) seen() View {
	view := u.view
	view.Pod, view.Removed = u.Allocated, u.removed
	return view
}

// Views returns what the workers of all Pods do.
func (p *Pool) Views() []View {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]View, 0, len(p.workers))
	for _, w := range p.workers {
		out = append(out, w.updates.seen())
	}
	return out
}

// Running is one running container instance of the node.
type Running struct {
	Pod     *corev1.Pod
	Name    string
	ID      string
	Attempt uint32
}

// Running returns all running instances, as the workers last saw them.
func (p *Pool) Running() []Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Running
	for _, w := range p.workers {
		for _, c := range w.updates.view.Containers {
			out = append(out, Running{Pod: w.updates.Allocated, Name: c.Name, ID: c.ID, Attempt: c.Attempt})
		}
	}
	return out
}

// Orphans returns how many Pods without an object in the API are being brought down.
func (p *Pool) Orphans() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, w := range p.workers {
		if w.updates.removed {
			n++
		}
	}
	return n
}

// Notify wakes the worker of a Pod without observing the runtime: something else has changed.
func (p *Pool) Notify(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[uid]; w != nil {
		w.wakeUp()
	}
}
