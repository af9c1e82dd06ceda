package class

import (
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
)

// index holds the verdicts of a class on all nodes.
type index struct {
	judge   *judge
	built   bool
	seen    uint64 // the version of the State up to which it is right
	nodes   []node // by slot
	buckets []heap // the nodes that nothing but their domains may refuse, by bucketID
	refused refusalCounts
	tops    []candidate // of the last call of best, to be used again
}

// node says where a node stands: in a bucket, or refused for reasons; neither when it has no Node object.
type node struct {
	stands int32 // 1 + bucketID, or the refusalID below zero
	at     int32 // position in the bucket's heap
}

func inBucket(id bucketID) node { return node{stands: int32(id) + 1} }

// bucket returns the bucket that the node is in, false when it is in none.
func (n node) bucket() (bucketID, bool) { return bucketID(n.stands - 1), n.stands > 0 }

// refusal returns why the node is refused, 0 when it is not.
func (n node) refusal() refusalID { return refusalID(max(0, -n.stands)) }

func newIndex(j *judge) *index { return &index{judge: j} }

// catchUp judges the nodes that changed since the last call, or all.
func (ix *index) catchUp(s *columns.State) {
	version := s.Version()
	if ix.built && ix.seen == version {
		return
	}
	if more := s.Slots() - len(ix.nodes); more > 0 {
		ix.nodes = append(ix.nodes, make([]node, more)...)
	}
	if !ix.built || ix.stale(s) || ix.sparse() ||
		!s.ChangedSince(ix.seen, func(slot columns.Slot) { ix.update(s, slot) }) {
		ix.rebuild(s)
	}
	ix.built, ix.seen = true, version
}

// stale reports whether more changed since the last call of catchUp than there are nodes.
func (ix *index) stale(s *columns.State) bool { return s.Version()-ix.seen > uint64(s.Slots()) }

// rebuild judges every node and orders each bucket once.
func (ix *index) rebuild(s *columns.State) {
	clear(ix.nodes)
	clear(ix.refused)
	ix.buckets = nil
	ix.judge.domain.forget()
	for slot := range columns.Slot(s.Slots()) {
		if !s.Known(slot) {
			continue
		}
		v := ix.judge.node(s, s.Node(slot))
		if v.refusal != 0 {
			ix.refuse(slot, v.refusal)
			continue
		}
		id := ix.judge.domain.bucket(v.traits, slot)
		h := ix.bucket(id)
		ix.nodes[slot] = inBucket(id)
		*h = append(*h, newItem(v.rank, slot))
	}
	for i := range ix.buckets {
		ix.buckets[i].order(ix.nodes)
	}
}

// update judges one node again.
func (ix *index) update(s *columns.State, slot columns.Slot) {
	if !s.Known(slot) {
		ix.withdraw(slot)
		return
	}
	v := ix.judge.node(s, s.Node(slot))
	n := ix.nodes[slot]
	if v.refusal != 0 {
		if v.refusal != n.refusal() {
			ix.withdraw(slot)
			ix.refuse(slot, v.refusal)
		}
		return
	}
	id := ix.judge.domain.bucket(v.traits, slot)
	if in, ok := n.bucket(); ok && in == id {
		ix.buckets[id].change(ix.nodes, n.at, v.rank)
		return
	}
	ix.withdraw(slot)
	ix.nodes[slot] = inBucket(id)
	ix.bucket(id).push(ix.nodes, newItem(v.rank, slot))
}

func (ix *index) refuse(slot columns.Slot, id refusalID) {
	ix.nodes[slot] = node{stands: -int32(id)}
	ix.refused.add(id, 1)
}

// withdraw takes a node out of where it stands.
func (ix *index) withdraw(slot columns.Slot) {
	n := ix.nodes[slot]
	ix.nodes[slot] = node{}
	if id, ok := n.bucket(); ok {
		ix.buckets[id].remove(ix.nodes, n.at)
	}
	ix.refused.add(n.refusal(), -1)
}

// bucket returns the heap of a bucket's nodes.
func (ix *index) bucket(id bucketID) *heap {
	for len(ix.buckets) <= int(id) {
		ix.buckets = append(ix.buckets, nil)
	}
	return &ix.buckets[id]
}

// maxSparse is how many buckets there may be of which most are empty.
const maxSparse = 256

// sparse reports whether most buckets are empty, as where domains come and go.
func (ix *index) sparse() bool {
	if len(ix.buckets) <= maxSparse || !ix.judge.domain.any() {
		return false
	}
	empty := 0
	for _, h := range ix.buckets {
		if len(h) == 0 {
			empty++
		}
	}
	return empty > len(ix.buckets)*3/4
}

// best compares the tops of the buckets.
func (ix *index) best(s *columns.State) (Choice, bool) {
	j := ix.judge
	ix.tops = ix.tops[:0]
	j.domain.start()
	for id, h := range ix.buckets {
		if len(h) == 0 || j.judgeBucket(bucketID(id)) != 0 {
			continue
		}
		traits := traitsID(id)
		if j.domain.any() {
			b := &j.domain.buckets[id]
			traits = b.traits
			j.domain.keep(b.cells)
		}
		ix.tops = append(ix.tops, candidate{raw: j.traits[traits], item: h[0], nodes: len(h)})
	}
	return j.pick(s, ix.tops)
}

// feasible returns how many nodes can take a Pod.
func (ix *index) feasible() int {
	n := 0
	for id, h := range ix.buckets {
		if len(h) > 0 && ix.judge.judgeBucket(bucketID(id)) == 0 {
			n += len(h)
		}
	}
	return n
}

// refusals returns how many nodes are refused, by refusalID.
func (ix *index) refusals() refusalCounts {
	if !ix.judge.domain.any() {
		return ix.refused
	}
	all := slices.Clone(ix.refused)
	for id, h := range ix.buckets {
		if len(h) > 0 {
			all.add(ix.judge.judgeBucket(bucketID(id)), len(h))
		}
	}
	return all
}
