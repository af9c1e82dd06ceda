package podworker

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// operation is an action under way.
type operation struct {
	cancel   context.CancelFunc
	deadline time.Time
	// size is the size that a start gives its instance.
	size *sizes.Instance
	// shorten, if set, moves the deadline of a stop forward.
	shorten func(time.Time)
	done    chan struct{}

	mu sync.Mutex // guards all fields below
	// committed means that the operation proceeds to its effects: before that, it only fetches what it needs.
	committed bool
	recalled  bool
}

// recall calls the operation off. One that is not committed goes on to fetch what it needs, but no further; recall
// reports whether the operation has just become recalled in this way.
func (o *operation) recall() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.committed {
		o.cancel()
		return false
	}
	before := o.recalled
	o.recalled = true
	return !before
}

// commit reports whether the operation may proceed to its effects.
func (o *operation) commit() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.committed = !o.recalled
	return o.committed
}

// op returns the operation as decisions see it.
func (o *operation) op() podstate.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	return podstate.Op{Deadline: o.deadline, Recalled: o.recalled, Size: o.size}
}

// outcome is the result of an operation.
type outcome struct {
	err error
	// reason is the fault's reason if err is set.
	reason string
	// observe means that the runtime's state may have changed.
	observe  bool
	remember func(*podstate.Memory)
}

// begin starts an action in its own goroutine. A stop that is under way gets the new deadline instead.
func (w *worker) begin(ctx context.Context, a podstate.Action) {
	if o := w.ops[a.Key]; o != nil {
		if o.shorten != nil {
			o.deadline = a.Deadline
			o.shorten(a.Deadline)
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	o := &operation{cancel: cancel, deadline: a.Deadline, done: make(chan struct{}),
		committed: a.Kind != podstate.StartContainer}
	if a.Kind == podstate.StartContainer {
		size := sizes.InstanceOf(w.pod, a.Container.Spec)
		o.size = &size
	}
	w.ops[a.Key] = o
	do := w.jobFor(a, o)
	go func() {
		defer close(o.done)
		defer cancel()
		began := time.Now()
		out := do(ctx)
		w.log.Debug("operation ended", zap.Stringer("operation", a.Key), zap.Duration("took", time.Since(began)),
			zap.Error(out.err))
		w.report(a.Key, out)
	}()
}

// jobFor returns the function that carries out an action. It works on copies of what the worker knows, because the
// worker goes on meanwhile.
func (w *worker) jobFor(a podstate.Action, o *operation) func(context.Context) outcome {
	job := &job{pool: w.pool, config: w.config, action: a, commit: o.commit, pod: w.pod, atMax: w.atMax(),
		podIP: w.podIP(), podIPs: w.podIPs(), seen: w.seen, updates: &w.updates, signals: w.signals}
	switch a.Kind {
	case podstate.Prepare:
		return job.prepare
	case podstate.Release:
		return job.release
	case podstate.CreateSandbox:
		return job.createSandbox
	case podstate.StopSandbox:
		return job.stopSandbox
	case podstate.RemoveSandbox:
		return job.removeSandbox
	case podstate.StartContainer:
		return job.startContainer
	case podstate.RunPostStart:
		return job.runPostStart
	case podstate.StopContainer:
		s := newStop(job)
		o.shorten = s.shorten
		return s.run
	case podstate.RemoveContainer:
		return job.removeContainer
	case podstate.DeletePod:
		return job.deletePod
	case podstate.ResizePod:
		return job.resize
	}
	return func(context.Context) outcome {
		return outcome{err: errors.New("no such action"), reason: string(a.Kind)}
	}
}

// report adds the end of an operation to the worker's updates.
func (w *worker) report(key podstate.Key, out outcome) {
	r := result{key: key, observe: out.observe, remember: out.remember}
	if out.err != nil && !errors.Is(out.err, context.Canceled) {
		r.fault = &podstate.Fault{Reason: out.reason, Message: out.err.Error()}
		w.log.Warn("operation failed", zap.Stringer("operation", key), zap.Error(out.err))
	}
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	w.updates.results = append(w.updates.results, r)
	w.wakeUp()
}

// stopAll cancels the operations because the agent stops.
func (w *worker) stopAll() {
	for _, o := range w.ops {
		o.cancel()
	}
}

// awaitAtMost bounds the wait for calls to the runtime when the agent stops. The next agent takes up what is cut
// short, as after a crash.
const awaitAtMost = 10 * time.Second

// await returns when no operation is under way.
func (w *worker) await() {
	late := time.After(awaitAtMost)
	for _, o := range w.ops {
		select {
		case <-o.done:
		case <-late:
			return
		}
	}
}

// job is one action with the state that it was decided from. It runs beside the worker and touches none of its
// fields.
type job struct {
	pool   *Pool
	config *Config
	action podstate.Action
	// commit reports whether the operation may proceed from fetching to its effects.
	commit func() bool
	pod    *corev1.Pod
	// atMax is the Pod at a size that has room for both sizes between which it is being resized.
	atMax   *corev1.Pod
	podIP   string
	podIPs  []string
	seen    observed.Pod
	updates *updates // guarded by pool.mu
	// signals holds an entry for each signal being sent to a container of the Pod.
	signals chan struct{}
}

// note records a normal event about the action's container, or about the Pod.
func (j *job) note(reason, format string, args ...any) {
	j.config.Events.Record(j.pod, j.action.Container.Path, events.Normal(reason, format, args...))
}

// warn records a warning.
func (j *job) warn(reason, format string, args ...any) {
	j.config.Events.Record(j.pod, j.action.Container.Path, events.Warning(reason, format, args...))
}

// quietly runs a call to the runtime whose events need not wake the worker: it observes the Pod at the end anyway.
func (j *job) quietly(do func() error) error {
	j.pool.mu.Lock()
	j.updates.quiet++
	j.pool.mu.Unlock()
	defer func() {
		j.pool.mu.Lock()
		defer j.pool.mu.Unlock()
		j.updates.quiet--
	}()
	return do()
}
