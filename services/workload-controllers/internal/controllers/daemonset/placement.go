package daemonset

import (
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/wake"
)

// Placement knows which nodes each DaemonSet runs on. It judges a node when the node or the DaemonSet changes, not
// in every pass, and a change of a node concerns only the DaemonSets whose verdict on it changes. It is safe for
// concurrent use.
type Placement struct {
	mu    sync.Mutex // guards what follows
	nodes map[string]*corev1.Node
	sets  map[types.UID]*placed
}

// placed is where one DaemonSet runs.
type placed struct {
	request    reconcile.Request
	generation int64
	eligibility
	verdicts map[string]verdict // without nodes that are unfit
	places   *Places            // nil when the verdicts have changed since
}

// Places are the nodes that run or keep a DaemonSet's Pods. They are immutable: a changed verdict leads to a new
// list.
type Places struct {
	list []place        // sorted by name
	at   map[string]int // by name
}

// place is a node as a DaemonSet sees it.
type place struct {
	node string
	verdict
}

// NewPlacement returns a placement without nodes.
func NewPlacement() *Placement {
	return &Placement{nodes: map[string]*corev1.Node{}, sets: map[types.UID]*placed{}}
}

// newPlaces returns the places for a set of verdicts.
func newPlaces(verdicts map[string]verdict) *Places {
	p := &Places{list: make([]place, 0, len(verdicts)), at: make(map[string]int, len(verdicts))}
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		p.at[name] = len(p.list)
		p.list = append(p.list, place{name, verdicts[name]})
	}
	return p
}

// Of returns where the DaemonSet runs. After the first call Put and Remove report changes for the DaemonSet.
func (p *Placement) Of(set *appsv1.DaemonSet) *Places {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.sets[set.UID]
	if known == nil || known.generation != set.Generation {
		known = &placed{request: wake.Request(set.Namespace, set.Name), generation: set.Generation,
			eligibility: *eligibilityOf(set), verdicts: map[string]verdict{}}
		for _, node := range p.nodes {
			known.judge(node)
		}
		p.sets[set.UID] = known
	}
	if known.places == nil {
		known.places = newPlaces(known.verdicts)
	}
	return known.places
}

// Forget drops a DaemonSet.
func (p *Placement) Forget(set *appsv1.DaemonSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sets, set.UID)
}

// Exists reports whether a node of the name exists.
func (p *Placement) Exists(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[node] != nil
}

// Put records the current state of a node and returns the DaemonSets that the change affects.
func (p *Placement) Put(node *corev1.Node) []reconcile.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.nodes[node.Name]
	p.nodes[node.Name] = node
	if last != nil && apiequality.Semantic.DeepEqual(last.Labels, node.Labels) &&
		apiequality.Semantic.DeepEqual(last.Spec.Taints, node.Spec.Taints) {
		return nil // a node's status changes often, and does not matter here
	}
	return p.changed(func(set *placed) bool { return set.judge(node) })
}

// Remove removes a node and returns the DaemonSets that this affects.
func (p *Placement) Remove(node *corev1.Node) []reconcile.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.nodes, node.Name)
	return p.changed(func(set *placed) bool { return set.set(node.Name, unfit) })
}

func (p *Placement) changed(change func(*placed) bool) []reconcile.Request {
	var requests []reconcile.Request
	for _, set := range p.sets {
		if change(set) {
			requests = append(requests, set.request)
		}
	}
	return requests
}

// judge reports whether the verdict on the node is another than before.
func (s *placed) judge(node *corev1.Node) bool { return s.set(node.Name, s.eligibility.of(node)) }

func (s *placed) set(node string, next verdict) bool {
	if s.verdicts[node] == next {
		return false
	}
	if s.verdicts[node], s.places = next, nil; next == unfit {
		delete(s.verdicts, node)
	}
	return true
}
