// Package fake is a container runtime in memory. It keeps the contract of package runtime, and a test can make it fail,
// stall, crash containers and lose sandboxes. It reads the clock and starts timers through package time, so in a
// synctest bubble its time is the bubble's.
package fake

import (
	"context"
	"fmt"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sync"
	"time"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Behavior is what the processes of an image do.
type Behavior struct {
	// RunFor ends a process after this time with ExitCode; 0 lets it run until it is stopped.
	RunFor   time.Duration
	ExitCode int32
	// StopTakes is how long a process takes to end after TERM. With IgnoreTERM only KILL ends it.
	StopTakes  time.Duration
	IgnoreTERM bool
	// StartError makes StartContainer fail; the instance then counts as exited with code 128.
	StartError error
}

// Call is one call to the runtime, or a signal that it sent (TERM and KILL).
type Call struct {
	At time.Time
	// Verb is the method's or signal's name, Object the name of its container or Pod.
	Verb   string
	Object string
}

// Runtime is the fake runtime; create it with New.
type Runtime struct {
	mu         sync.Mutex // guards all fields below
	serial     int
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]runtime.Image
	behaviors  map[string]Behavior
	faults     map[string][]error
	delays     map[string]time.Duration
	execs      func(container string, command []string) (runtime.ExecResult, error)
	registry   func(ref string, auth *cri.AuthConfig) error
	calls      []Call
	watchers   map[int]chan runtime.Event
	status     runtime.Status
	imageFs    string
	down       error
}

var _ runtime.Runtime = (*Runtime)(nil)

type sandbox struct {
	observed.Sandbox
}

type container struct {
	observed.Container
	// leftover is a process that an interrupted start has left: no call ends it, and nothing can be removed before it
	// has ended.
	leftover bool
	behavior Behavior
	limits   *cri.LinuxContainerResources
	layer    runtime.Layer
	// exited is closed when the instance has exited.
	exited chan struct{}
}

// New returns an empty runtime with the given images.
func New(images ...string) *Runtime {
	r := &Runtime{
		sandboxes: map[string]*sandbox{}, containers: map[string]*container{}, images: map[string]runtime.Image{},
		behaviors: map[string]Behavior{}, faults: map[string][]error{}, delays: map[string]time.Duration{},
		watchers: map[int]chan runtime.Event{},
		status:   runtime.Status{CgroupDriver: "cgroupfs"},
	}
	for _, ref := range images {
		r.images[ref] = runtime.Image{ID: "sha256:" + ref, Tags: []string{ref}, Size: 1 << 20}
	}
	return r
}

// SetBehavior sets what the processes of an image do from now on.
func (r *Runtime) SetBehavior(image string, b Behavior) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behaviors[image] = b
}

// SetExec makes ExecSync call f.
func (r *Runtime) SetExec(f func(container string, command []string) (runtime.ExecResult, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.execs = f
}

// SetRegistry makes pulls fail with the errors that f returns.
func (r *Runtime) SetRegistry(f func(ref string, auth *cri.AuthConfig) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.registry = f
}

// Fail makes the next calls of a method fail, one for each error.
func (r *Runtime) Fail(method string, errs ...error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[method] = append(r.faults[method], errs...)
}

// SetDelay makes every call of a method take d, or until its context ends.
func (r *Runtime) SetDelay(method string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays[method] = d
}

// SetDown makes every call fail with err until it is called with nil: the runtime's service does not answer, but
// its containers run on.
func (r *Runtime) SetDown(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = err
}

// Exit ends the newest live instance of a container, as if its process had exited. It returns false if it has none.
func (r *Runtime) Exit(podUID, name string, code int32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.PodUID == podUID && c.Name == name && c.State == observed.Running {
			r.exitLocked(c, code, "")
			return true
		}
	}
	return false
}

// Interrupt turns the newest instance of a container, which must be created or have exited, into one whose start
// was interrupted: it is in the given state, has never started, and has left a process that the runtime does not
// know.
func (r *Runtime) Interrupt(podUID, name string, state observed.ContainerState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.PodUID == podUID && c.Name == name && c.State != observed.Exited {
			c.State, c.StartedAt, c.leftover = state, time.Time{}, true
			r.notifyLocked(runtime.Event{PodUID: podUID, ContainerID: c.ID})
		}
	}
}

// Kill ends the processes of an instance without the runtime's knowledge.
func (r *Runtime) Kill(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		r.noteLocked("kill", c.Name)
		c.leftover = false
		r.exitLocked(c, 137, "")
	}
}

// LoseSandboxes makes all sandboxes of a Pod and their containers die, as in a reboot.
func (r *Runtime) LoseSandboxes(podUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.PodUID == podUID {
			r.exitLocked(c, 137, "")
		}
	}
	for _, s := range r.sandboxes {
		if s.PodUID == podUID {
			s.Ready = false
			r.notifyLocked(runtime.Event{PodUID: podUID})
		}
	}
}

// Calls returns all calls and signals so far, in order.
func (r *Runtime) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Call(nil), r.calls...)
}

// Live returns how many instances of a container have a process.
func (r *Runtime) Live(podUID, name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.containers {
		if c.PodUID == podUID && c.Name == name && c.State == observed.Running {
			n++
		}
	}
	return n
}

// begin records a call, waits its delay and returns the error that is set for it.
func (r *Runtime) begin(ctx context.Context, method, object string) error {
	r.mu.Lock()
	r.noteLocked(method, object)
	delay, err := r.delays[method], r.down
	if faults := r.faults[method]; err == nil && len(faults) > 0 {
		err, r.faults[method] = faults[0], faults[1:]
	}
	r.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (r *Runtime) noteLocked(verb, object string) {
	r.calls = append(r.calls, Call{At: time.Now(), Verb: verb, Object: object})
}

func (r *Runtime) idLocked(kind string) string {
	r.serial++
	return fmt.Sprintf("%s-%d", kind, r.serial)
}

func (r *Runtime) notifyLocked(e runtime.Event) {
	for _, w := range r.watchers {
		select {
		case w <- e:
		default: // a lost event: the contract allows it
		}
	}
}

// exitLocked ends a running instance.
func (r *Runtime) exitLocked(c *container, code int32, reason string) {
	if c.State != observed.Running {
		return
	}
	c.State, c.ExitCode, c.Reason, c.FinishedAt = observed.Exited, code, reason, time.Now()
	close(c.exited)
	r.notifyLocked(runtime.Event{PodUID: c.PodUID, ContainerID: c.ID})
}
