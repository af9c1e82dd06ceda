package probe

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// instance is one container instance with its probes.
//
//	startup probe --success--> liveness and readiness probes
//
// Without a startup probe the others start at once.
type instance struct {
	pod    types.UID
	prober *Prober

	mu      sync.Mutex // guards the fields below
	target  Target
	windows map[Kind]window
	cancels map[Kind]context.CancelFunc
	stopped bool
}

func (p *Prober) newInstance(target Target) *instance {
	i := &instance{pod: target.Pod.UID, prober: p, target: target, windows: map[Kind]window{},
		cancels: map[Kind]context.CancelFunc{}}
	for kind := range probesOf(target.Container) {
		i.windows[kind] = initial(kind)
	}
	if target.Started && target.Container.StartupProbe != nil {
		i.windows[Startup] = window{state: Success}
	}
	if target.Ready && target.Container.ReadinessProbe != nil {
		i.windows[Readiness] = window{state: Success}
	}
	return i
}

// probesOf returns the probes that the container has.
func probesOf(container *corev1.Container) map[Kind]*corev1.Probe {
	probes := map[Kind]*corev1.Probe{}
	for kind, probe := range map[Kind]*corev1.Probe{Startup: container.StartupProbe, Liveness: container.LivenessProbe,
		Readiness: container.ReadinessProbe} {
		if probe != nil {
			probes[kind] = probe
		}
	}
	return probes
}

// update takes in the newest target and starts and stops probes accordingly.
func (i *instance) update(target Target) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.target = target
	i.arrange()
}

// arrange runs exactly the probes for the present state. The caller holds the lock.
func (i *instance) arrange() {
	started := resultOf(i.target.Container, i.states()).Started
	for kind, probe := range probesOf(i.target.Container) {
		due := !i.stopped
		switch kind {
		case Startup:
			due = due && !i.target.Stopping && i.windows[Startup].state == Unknown
		case Liveness:
			due = due && !i.target.Stopping && started && i.windows[Liveness].state != Failure
		case Readiness:
			due = due && started
		}
		cancel := i.cancels[kind]
		switch {
		case due && cancel == nil:
			ctx, cancel := context.WithCancel(context.Background())
			i.cancels[kind] = cancel
			i.prober.running.Go(func() { i.prober.run(ctx, i, kind, probe) })
		case !due && cancel != nil:
			cancel()
			delete(i.cancels, kind)
		}
	}
}

func (i *instance) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	i.arrange()
}

func (i *instance) current() Target {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.target
}

// observe counts an outcome and returns the probe's state, and whether the instance's result has changed.
func (i *instance) observe(kind Kind, outcome Outcome, probe *corev1.Probe) (state Outcome, changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.windows[kind]
	after := before.observe(outcome, probe)
	i.windows[kind] = after
	if before.state == after.state {
		return after.state, false
	}
	i.arrange()
	return after.state, true
}

func (i *instance) result() Result {
	i.mu.Lock()
	defer i.mu.Unlock()
	return resultOf(i.target.Container, i.states())
}

// states returns the states of all probes. The caller holds the lock.
func (i *instance) states() map[Kind]Outcome {
	states := make(map[Kind]Outcome, len(i.windows))
	for kind, window := range i.windows {
		states[kind] = window.state
	}
	return states
}
