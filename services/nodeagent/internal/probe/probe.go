// Package probe runs the startup, liveness and readiness probes of the containers of a node, and keeps their combined
// results. Each container instance has its own probes: a restarted container starts without earlier results.
//
// The owner of a Pod calls Sync on each of its passes and reads Result; it is woken through Config.Changed.
package probe

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/handlers"
)

// Target is one running container instance to be probed. What it points to never changes.
type Target struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// ContainerID is the runtime's ID of the instance, StartedAt the time of its start.
	ContainerID string
	StartedAt   time.Time
	// IP is the address that probes go to: the Pod's, or the node's for a Pod on the host's network.
	IP string
	// Started and Ready are the API's last values for this instance. A nodeagent that has just started continues from
	// them; later they are ignored.
	Started, Ready bool
	// Stopping means that the Pod or the container is being stopped: only readiness is still probed.
	Stopping bool
}

// The reasons of events about probes.
const (
	unhealthy = "Unhealthy"
	warned    = "ProbeWarning"
)

// Config is what a Prober needs.
type Config struct {
	Executor handlers.Executor
	// Changed is called, without any lock, when the Result of an instance of the Pod has changed. It must not block.
	Changed func(pod types.UID)
	// Tell is called, without any lock, for each diagnostic that fails, cannot be carried out or returns a warning,
	// with the reason and the message of a Warning event about the container. It must not block.
	Tell func(target Target, reason, message string)
	// Version is sent to containers as kube-probe/<version>.
	Version string
}

// Prober probes all containers of a node. It is safe for concurrent use.
type Prober struct {
	config  Config
	checker *checker
	counts  counts
	running sync.WaitGroup

	mu        sync.Mutex // guards instances; an instance's own lock is locked after it
	instances map[string]*instance
}

// New returns a Prober that probes nothing yet.
func New(config Config) *Prober {
	return &Prober{
		config: config,
		checker: &checker{executor: config.Executor, client: handlers.NewClient(), dialer: handlers.Dialer(),
			version: config.Version},
		counts:    newCounts(),
		instances: map[string]*instance{},
	}
}

// Sync makes the given instances of the Pod the probed ones: it starts to probe new ones, continues with known
// ones, and forgets all others of the Pod. Without targets it ends all probes of the Pod.
func (p *Prober) Sync(pod types.UID, targets []Target) {
	wanted := make(map[string]bool, len(targets))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, target := range targets {
		wanted[target.ContainerID] = true
		known := p.instances[target.ContainerID]
		if known == nil {
			known = p.newInstance(target)
			p.instances[target.ContainerID] = known
		}
		known.update(target)
	}
	for id, known := range p.instances {
		if known.pod == pod && !wanted[id] {
			known.stop()
			delete(p.instances, id)
		}
	}
}

// Result returns the combined result of an instance's probes; ok is false for an instance that is not probed.
func (p *Prober) Result(containerID string) (result Result, ok bool) {
	p.mu.Lock()
	known := p.instances[containerID]
	p.mu.Unlock()
	if known == nil {
		return Result{}, false
	}
	return known.result(), true
}

// Close ends all probes and waits for them.
func (p *Prober) Close() {
	p.mu.Lock()
	for id, known := range p.instances {
		known.stop()
		delete(p.instances, id)
	}
	p.mu.Unlock()
	p.running.Wait()
}

// run runs one probe of an instance until its context ends or the probe has decided for good.
func (p *Prober) run(ctx context.Context, i *instance, kind Kind, probe *corev1.Probe) {
	target := i.current()
	timer := time.NewTimer(time.Until(firstAt(probe, target.StartedAt, time.Now(), target.ContainerID)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(Period(probe))
		target := i.current()
		began := time.Now()
		outcome, message := p.checker.check(ctx, target, probe)
		if ctx.Err() != nil {
			return
		}
		p.count(target, kind, outcome, time.Since(began))
		switch outcome {
		case Failure:
			p.config.Tell(target, unhealthy, string(kind)+" probe failed: "+message)
		case Unknown:
			p.config.Tell(target, unhealthy, string(kind)+" probe errored: "+message)
		case Warning:
			p.config.Tell(target, warned, string(kind)+" probe warning: "+message)
			outcome = Success
		}
		state, changed := i.observe(kind, outcome, probe)
		if changed {
			p.config.Changed(i.pod)
		}
		if (kind == Startup && state != Unknown) || (kind == Liveness && state == Failure) {
			return
		}
	}
}
