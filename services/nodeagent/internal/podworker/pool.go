package podworker

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/resize"
)

// Pool holds all workers of a node.
type Pool struct {
	ctx    context.Context
	config Config
	// steps are the names of the preparation steps, in their order.
	steps []string

	mu      sync.Mutex // guards workers and every worker's updates
	workers map[types.UID]*worker
	// deleted holds Pods that this pool has deleted until the API confirms it: a late version of them starts nothing.
	deleted map[types.UID]bool
	running sync.WaitGroup
	// resizing holds the Pods whose desired size differs from the allocated one; settled means that all Pods are
	// known.
	resizing map[types.UID]bool
	settled  bool
	// listed means that the runtime's containers were listed since the agent started; live are the Pods that ran then.
	listed bool
	live   map[types.UID]types.NamespacedName
	// began is when the pool was created.
	began  time.Time
	passes passes
}

// NewPool returns an empty pool. Its workers stop when ctx ends, and leave their containers as they are: the next
// agent adopts them.
func NewPool(ctx context.Context, config Config) *Pool {
	p := &Pool{ctx: ctx, config: config, workers: map[types.UID]*worker{}, deleted: map[types.UID]bool{},
		resizing: map[types.UID]bool{}, live: map[types.UID]types.NamespacedName{}, began: time.Now(),
		passes: passes{begun: map[types.UID]time.Time{}}}
	for _, step := range config.Preparation {
		p.steps = append(p.steps, step.Name)
	}
	return p
}

// Set takes in a Pod, new or changed. It ignores a version older than the known one. known means that the node has
// run the Pod before: the Pod is not admitted again, and its worker first observes what the runtime has of it.
func (p *Pool) Set(pod *corev1.Pod, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deleted[pod.UID] {
		return
	}
	w := p.workers[pod.UID]
	if w != nil {
		if newer(pod, w.updates.Desired) {
			p.acceptLocked(w, pod)
			p.resizeLocked()
			w.wakeUp()
		}
		return
	}
	w = newWorker(p, pod)
	if !known && pod.Status.StartTime == nil && !podview.IsTerminal(pod) && !podview.IsTerminating(pod) {
		w.stale = false // the runtime has nothing of the Pod
		if p.config.Admit != nil {
			w.refused = p.config.Admit(pod, p.othersLocked(nameOf(pod)))
		}
	}
	p.startLocked(w)
	p.acceptLocked(w, pod)
	p.resizeLocked()
}

// Remove notes that the API has no object of the UID any more.
func (p *Pool) Remove(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.deleted, uid)
	p.removeLocked(uid)
}

// removeDeleted is Remove for a Pod that this pool has deleted itself.
func (p *Pool) removeDeleted(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[uid]; w != nil && !w.updates.removed {
		p.deleted[uid] = true
	}
	p.removeLocked(uid)
}

func (p *Pool) removeLocked(uid types.UID) {
	if w := p.workers[uid]; w != nil {
		w.updates.removed = true
		w.wakeUp()
	}
}

// Evict ends a Pod that the node can no longer support. It leaves a Pod that has ended or is being evicted as it
// is.
func (p *Pool) Evict(uid types.UID, why podstate.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[uid]; w != nil && w.updates.evicted == nil {
		w.updates.evicted = &why
		w.wakeUp()
	}
}

// Knows reports whether the Pod has a worker or was deleted just now.
func (p *Pool) Knows(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers[uid] != nil || p.deleted[uid]
}

// Adopt takes over a Pod that has something on the node but no object in the API, and brings it down. Its name may
// be unknown.
func (p *Pool) Adopt(uid types.UID, namespace, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers[uid] != nil {
		return
	}
	if live, ok := p.live[uid]; ok {
		namespace, name = live.Namespace, live.Name
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: namespace, Name: name}}
	w := newWorker(p, pod)
	w.updates.removed = true
	p.startLocked(w)
}

// Wake notes that the runtime's state of a Pod has changed. It returns false if the pool has no such Pod.
func (p *Pool) Wake(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.workers[uid]
	if w == nil {
		return false
	}
	w.updates.observe = true
	if w.updates.quiet == 0 {
		w.wakeUp()
	}
	return true
}

// Refresh makes a Pod refresh its volumes soon.
func (p *Pool) Refresh(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[uid]; w != nil {
		w.updates.refresh = true
		w.wakeUp()
	}
}

// Networked notes that the network of Pods has become ready: what failed for lack of it is tried again at once.
func (p *Pool) Networked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		w.updates.networked = true
		w.wakeUp()
	}
}

// Pods returns the newest known versions of all Pods, including those that are being removed.
func (p *Pool) Pods() []*corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*corev1.Pod, 0, len(p.workers))
	for _, w := range p.workers {
		out = append(out, w.updates.Allocated)
	}
	return out
}

// Pod returns the newest known version of a Pod, or nil.
func (p *Pool) Pod(uid types.UID) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[uid]; w != nil {
		return w.updates.Allocated
	}
	return nil
}

// Wait returns when all workers have stopped, after the pool's context has ended.
func (p *Pool) Wait() { p.running.Wait() }

// Active returns the Pods that hold resources of the node, each with whether it is being ended.
func (p *Pool) Active() map[*corev1.Pod]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[*corev1.Pod]bool{}
	for _, w := range p.workers {
		if w.activeLocked() {
			u := &w.updates
			out[u.Allocated] = u.removed || u.evicted != nil || podview.IsTerminating(u.Allocated)
		}
	}
	return out
}

// othersLocked returns the Pods that hold resources of the node beside one of that name. It leaves out the others
// of that name, which must stop before this one starts.
func (p *Pool) othersLocked(name types.NamespacedName) []*corev1.Pod {
	var out []*corev1.Pod
	for _, w := range p.workers {
		if w.activeLocked() && nameOf(w.updates.Allocated) != name {
			out = append(out, w.updates.Allocated)
		}
	}
	return out
}

// activeLocked reports whether the Pod holds resources of the node. A Pod that the node has ended holds none when
// no process of it is left, even if the API cannot be told.
func (w *worker) activeLocked() bool {
	return !podview.IsTerminal(w.updates.Allocated) && !w.rejected && !w.updates.view.Plan.Stopped
}

func (p *Pool) startLocked(w *worker) {
	w.rejected = w.refused != nil || w.memory.Rejection != nil
	_, w.updates.begun = p.live[w.uid]
	p.workers[w.uid] = w
	p.running.Go(func() { w.run(p.ctx) })
}

// forget drops a worker that has ended.
func (p *Pool) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[uid]; w != nil {
		p.freeLocked(nameOf(w.updates.Allocated))
	}
	delete(p.workers, uid)
	delete(p.live, uid)
	delete(p.resizing, uid)
	p.resizeLocked()
}

// newer reports whether pod is a later version than old.
func newer(pod, old *corev1.Pod) bool {
	if old.ResourceVersion == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, old.ResourceVersion)
	return err != nil || order > 0
}

// updates is what other goroutines pass to a worker, and the view that it shows them; the pool's lock guards it.
type updates struct {
	resize.Allocation
	removed bool
	observe bool
	refresh bool
	// networked means that the network of Pods has become ready.
	networked bool
	// evicted is why the node ends the Pod.
	evicted *podstate.Outcome
	results []result
	// begun means that something of the Pod may run, until its plan says that it has stopped.
	begun bool
	// quiet counts the operations during which runtime events do not wake the worker.
	quiet int
	view  View
}

// result is the end of an operation.
type result struct {
	key podstate.Key
	// observe means that the runtime's state may have changed.
	observe bool
	fault   *podstate.Fault
	// remember changes the worker's memory.
	remember func(*podstate.Memory)
}
