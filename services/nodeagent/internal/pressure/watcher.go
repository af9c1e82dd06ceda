// Package pressure keeps a node from running out of memory, disk, inodes and process IDs: it reports shortages in
// conditions, removes unused containers and images, and then evicts one Pod at a time. Pure functions (decide*.go)
// decide from the state of the node; the Watcher reads that state and acts.
package pressure

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// every is how often the node is checked.
const every = 10 * time.Second

// Config is what a Watcher needs.
type Config struct {
	Log   *zap.Logger
	Rules Rules
	Host  *Host
	// Stored returns the node's conditions in the API.
	Stored func() []corev1.NodeCondition
	// Changed is called when the node's conditions have changed.
	Changed func()
	// Pods returns the Pods of the node; Measure returns how much of a signal's resource one of them uses.
	Pods    func() []Pod
	Measure func(ctx context.Context, pod *Pod, s Signal) (Usage, error)
	// Reclaim performs a step.
	Reclaim func(ctx context.Context, step Step) error
	// Evict ends a Pod, Record writes an event about the node.
	Evict  func(uid types.UID, why podstate.Outcome)
	Record func(events.Event)
	// Evicted counts the evictions by signal.
	Evicted func(Signal)
}

// Watcher watches a node for shortages.
type Watcher struct {
	Config

	mu      sync.Mutex // guards all fields below
	state   State
	resumed bool
	// told are the conditions of the last pass: they also end by time alone.
	told []corev1.NodeConditionType
}

// New returns a Watcher that has not checked the node yet.
func New(c Config) *Watcher { return &Watcher{Config: c} }

// Conditions returns the conditions for what the node is short of.
func (w *Watcher) Conditions() []corev1.NodeConditionType {
	w.mu.Lock()
	defer w.mu.Unlock()
	// An earlier agent's status is known once the node is registered; static Pods are admitted earlier.
	if stored := w.Stored(); !w.resumed && len(stored) > 0 {
		w.state, w.resumed = w.state.Resume(stored, time.Now()), true
		w.told = w.state.Conditions(w.Rules.Transition, time.Now())
	}
	return w.state.Conditions(w.Rules.Transition, time.Now())
}

// Run checks the node until ctx ends. All Pods of the node must be known.
func (w *Watcher) Run(ctx context.Context) {
	if len(w.Rules.Thresholds) == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.Pass(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look reads the state of the node and returns what to do about it.
func (w *Watcher) Look(ctx context.Context) (Verdict, Input) {
	w.Conditions() // takes over an earlier agent's conditions
	levels, err := w.Host.Levels(ctx, w.Rules.Thresholds)
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("reading how the node stands failed in part", zap.Error(err))
	}
	w.mu.Lock()
	in := Input{Now: time.Now(), Rules: w.Rules, State: w.state, Levels: levels}
	verdict := Decide(in)
	w.state = verdict.State
	before, after := w.told, w.state.Conditions(w.Rules.Transition, in.Now)
	w.told = after
	w.mu.Unlock()
	if !slices.Equal(before, after) {
		w.Log.Info("what the node is short of has changed", zap.Any("before", before), zap.Any("now", after))
		w.Changed()
	}
	return verdict, in
}

// Pass checks the node once, and evicts at most one Pod.
func (w *Watcher) Pass(ctx context.Context) {
	verdict, in := w.Look(ctx)
	if verdict.Relieve == nil {
		return
	}
	t := *verdict.Relieve
	w.Record(events.Warning("EvictionThresholdMet", "Attempting to reclaim %s", t.Signal.starves()))
	level, relieved := w.reclaim(ctx, t, in.Levels[t.Signal])
	if relieved {
		return
	}
	in.State = verdict.State
	eviction, next := Evict(t, level, w.measured(ctx, t), in)
	w.mu.Lock()
	w.state = next
	w.mu.Unlock()
	if eviction == nil {
		w.Log.Info("nobody can be evicted now", zap.String("signal", string(t.Signal)))
		return
	}
	pod := eviction.Pod
	w.Log.Info("evicting a Pod", zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name),
		zap.String("signal", string(t.Signal)), zap.Int64("uses", pod.Usage.Pod))
	w.Evicted(t.Signal)
	w.Evict(pod.UID, eviction.Why)
}

// reclaim removes unused containers and images and returns the new level, and whether that was enough.
func (w *Watcher) reclaim(ctx context.Context, t Threshold, level Level) (Level, bool) {
	apart, err := w.Host.ImagesApart(ctx)
	if err != nil {
		w.Log.Warn("finding out where images lie failed", zap.Error(err))
		return level, false
	}
	for _, step := range t.Signal.Steps(apart) {
		if err := w.Reclaim(ctx, step); err != nil && ctx.Err() == nil {
			w.Log.Warn("relieving the node failed in part", zap.String("step", string(step)), zap.Error(err))
		}
		now, err := w.Host.level(ctx, t.Signal)
		if err != nil {
			w.Log.Warn("reading how the node stands failed", zap.Error(err))
			continue
		}
		if level = now; t.relieved(level) {
			w.Log.Info("the node is relieved", zap.String("signal", string(t.Signal)), zap.String("by", string(step)))
			return level, true
		}
	}
	return level, false
}

// measureFor bounds the time for measuring a node's Pods: what is not known by then counts as far as it is.
const measureFor = 5 * time.Second

// measured returns the Pods with how much of the scarce resource each uses.
func (w *Watcher) measured(ctx context.Context, t Threshold) []Pod {
	ctx, cancel := context.WithTimeout(ctx, measureFor)
	defer cancel()
	pods := w.Pods()
	for i := range pods {
		p := &pods[i]
		if !p.evictable() {
			continue
		}
		var err error
		if p.Usage, err = w.Measure(ctx, p, t.Signal); err != nil {
			w.Log.Warn("measuring a Pod failed in part", zap.String("namespace", p.Namespace),
				zap.String("pod", p.Name), zap.Error(err))
		}
	}
	return pods
}
