package nodeipam

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ledger records the ranges in use: those in the Nodes, and those assigned whose write may still arrive. An assigned
// range belongs to its Node until the Node is gone.
type ledger struct {
	mu    sync.Mutex // guards all below
	pools []*pool
	held  map[types.UID][]netip.Prefix
	// waiting are the names of the Nodes that got no range.
	waiting map[types.UID]string
}

func newLedger(pools []*pool) *ledger {
	return &ledger{pools: pools, held: map[types.UID][]netip.Prefix{}, waiting: map[types.UID]string{}}
}

// observe records a state of a Node, which may be outdated: a Node without ranges keeps those assigned to it.
func (l *ledger) observe(node *corev1.Node) {
	if ranges := rangesOf(node); len(ranges) > 0 {
		l.hold(node.UID, ranges)
	}
}

// hold replaces the ranges that the Node holds.
func (l *ledger) hold(node types.UID, ranges []netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, node)
	if slices.Equal(l.held[node], ranges) {
		return
	}
	l.release(node)
	for _, prefix := range ranges {
		for _, p := range l.pools {
			p.take(prefix)
		}
	}
	l.held[node] = ranges
}

// forget frees the ranges of a deleted Node, and returns the name of a Node that waits for them, or "".
func (l *ledger) forget(node *corev1.Node) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, node.UID)
	if !l.release(node.UID) {
		return ""
	}
	for uid, name := range l.waiting {
		delete(l.waiting, uid)
		return name
	}
	return ""
}

// owners returns the Nodes that hold ranges.
func (l *ledger) owners() []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.held))
}

// drop frees the ranges of a Node that does not exist, and reports whether a share has become free.
func (l *ledger) drop(node types.UID) (freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.release(node)
}

func (l *ledger) release(node types.UID) (freed bool) {
	for _, prefix := range l.held[node] {
		for _, p := range l.pools {
			freed = p.giveBack(prefix) || freed
		}
	}
	delete(l.held, node)
	return freed
}

// wait remembers a Node that could not be served, and says whether it is the first.
func (l *ledger) wait(node *corev1.Node) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = len(l.waiting) == 0
	l.waiting[node.UID] = node.Name
	return first
}

// look returns the input of a decision about a Node.
func (l *ledger) look(node *corev1.Node) Input {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := Input{Node: node, Held: l.held[node.UID]}
	for _, p := range l.pools {
		in.Offers = append(in.Offers, Offer{Cluster: p.cluster, Bits: p.bits, Share: p.offer()})
	}
	return in
}
