package room

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"keelson.dev/kit/noderesources"
	"keelson.dev/services/apiserver/internal/intern"
)

// Full is a Pod that does not fit on a node.
type Full struct{ Pod, Node, Lacks string }

// Error implements error.
func (f *Full) Error() string {
	return fmt.Sprintf("pod %s does not fit on node %q: %s", f.Pod, f.Node, f.Lacks)
}

// key is a Pod on a node.
type key struct {
	pod  types.UID
	node string
}

// entry is a Pod that takes room: it was read from the store, or its binding is being written.
type entry struct {
	requests corev1.ResourceList
	// writers are the bindings under way, seen tells that the store has shown the Pod on the node.
	writers int
	seen    bool
	// touched is when the entry was last known to be true.
	touched uint64
}

// ledger keeps the room that is taken on each node. A mark is a point in its time.
type ledger struct {
	interned *intern.Pool

	mu      sync.Mutex // guards all below
	now     uint64
	entries map[key]*entry
	nodes   map[string]*noderesources.Usage
	// byNode has the Pods of each node, which are few.
	byNode map[string][]types.UID
}

func newLedger() *ledger {
	return &ledger{interned: intern.New(), entries: map[key]*entry{}, nodes: map[string]*noderesources.Usage{},
		byNode: map[string][]types.UID{}}
}

// Reservation is room that is held for a binding while it is written. Exactly one of Keep and Release ends it; nil is
// no reservation.
type Reservation struct {
	ledger *ledger
	key    key
}

// reserve holds room for the Pod on the node, or returns a *Full.
func (l *ledger) reserve(pod *corev1.Pod, node *corev1.Node) (*Reservation, error) {
	requests := l.requests(pod)
	k := key{pod.UID, node.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[k]
	if e == nil {
		var used noderesources.Usage
		if on := l.nodes[node.Name]; on != nil {
			used = *on
		}
		if lacks := Lacking(requests, used, node.Status.Allocatable); lacks != "" {
			return nil, &Full{Pod: pod.Name, Node: node.Name, Lacks: lacks}
		}
		e = l.addLocked(k, requests)
	}
	e.writers++
	return &Reservation{ledger: l, key: k}, nil
}

// requests are what the Pod holds on its node, in the memory of others that hold as much.
func (l *ledger) requests(pod *corev1.Pod) corev1.ResourceList {
	return l.interned.Resources(requested(pod))
}

// requested is what the Pod holds on its node. While it is resized that is the greater of what it has and what it asks
// for; a Pod of the first generation never was.
func requested(pod *corev1.Pod) corev1.ResourceList {
	resized := pod.Generation > 1
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: resized,
		InPlacePodLevelResourcesVerticalScalingEnabled: resized})
}

// Keep ends the write of a binding that was made, or perhaps made: the store will tell.
func (r *Reservation) Keep() { r.end(true) }

// Release ends a binding that was not made.
func (r *Reservation) Release() { r.end(false) }

func (r *Reservation) end(made bool) {
	if r == nil {
		return
	}
	l := r.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[r.key]
	if e == nil {
		return
	}
	e.writers--
	if made {
		e.seen = true
		e.touched = l.tickLocked()
	}
	if e.writers == 0 && !e.seen {
		l.removeLocked(r.key)
	}
}

// set takes note of a Pod that the store shows on its node.
func (l *ledger) set(pod *corev1.Pod) {
	requests := l.requests(pod)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setLocked(pod, requests)
}

func (l *ledger) setLocked(pod *corev1.Pod, requests corev1.ResourceList) {
	k := key{pod.UID, pod.Spec.NodeName}
	e := l.entries[k]
	if e == nil {
		e = l.addLocked(k, requests)
	} else if !equal(e.requests, requests) {
		l.nodes[k.node].Remove(e.requests)
		l.nodes[k.node].Add(requests)
		e.requests = requests
	}
	e.seen = true
	e.touched = l.tickLocked()
}

// drop takes note of a Pod that has ended or is gone.
func (l *ledger) drop(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := (key{pod.UID, pod.Spec.NodeName}); l.entries[k] != nil {
		l.removeLocked(k)
	}
}

// mark is taken before a list of Pods is asked for.
func (l *ledger) mark() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tickLocked()
}

// forget drops the node's Pods that a list asked for after the mark does not have, but for those that are being bound
// or became known since.
func (l *ledger) forget(node string, mark uint64, listed map[types.UID]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pod := range slices.Clone(l.byNode[node]) {
		k := key{pod, node}
		if e := l.entries[k]; e.writers == 0 && e.touched < mark && !listed[pod] {
			l.removeLocked(k)
		}
	}
}

// replace takes over a list of all Pods on nodes that was asked for after the mark.
func (l *ledger) replace(pods []corev1.Pod, mark uint64) {
	listed := make(map[types.UID]bool, len(pods))
	for i := range pods {
		listed[pods[i].UID] = true
		l.set(&pods[i])
	}
	l.mu.Lock()
	nodes := make([]string, 0, len(l.byNode))
	for node := range l.byNode {
		nodes = append(nodes, node)
	}
	l.mu.Unlock()
	for _, node := range nodes {
		l.forget(node, mark, listed)
	}
}

func (l *ledger) tickLocked() uint64 {
	l.now++
	return l.now
}

func (l *ledger) addLocked(k key, requests corev1.ResourceList) *entry {
	e := &entry{requests: requests}
	l.entries[k] = e
	if l.nodes[k.node] == nil {
		l.nodes[k.node] = &noderesources.Usage{}
	}
	l.byNode[k.node] = append(l.byNode[k.node], k.pod)
	l.nodes[k.node].Add(requests)
	return e
}

func (l *ledger) removeLocked(k key) {
	e := l.entries[k]
	delete(l.entries, k)
	left := slices.DeleteFunc(l.byNode[k.node], func(pod types.UID) bool { return pod == k.pod })
	l.byNode[k.node] = left
	if len(left) == 0 {
		delete(l.byNode, k.node)
		delete(l.nodes, k.node)
		return
	}
	l.nodes[k.node].Remove(e.requests)
}

func equal(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		other, ok := b[name]
		if !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
