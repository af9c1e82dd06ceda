package class

import (
	"keelson.dev/services/scheduler/internal/columns"
)

// index holds the verdicts of a class on all nodes.
type index struct {
	judge    *judge
	built    bool
	seen     uint64 // the version of the State up to which it is right
	nodes    []node // by slot
	buckets  []heap // the feasible nodes, by traitsID
	refused  refusalCounts
	feasible int
	tops     []candidate // of the last call of best, to be used again
}

// node says where a node stands: in a bucket, or refused for reasons; neither when it has no Node object.
type node struct {
	refusal refusalID
	bucket  int32 // 1 + traitsID, 0 for none
	at      int32 // position in the bucket's heap
}

func newIndex(j *judge) *index { return &index{judge: j} }

// catchUp judges the nodes that changed since the last call, or all.
func (ix *index) catchUp(s *columns.State) {
	version := s.Version()
	if ix.built && ix.seen == version {
		return
	}
	for len(ix.nodes) < s.Slots() {
		ix.nodes = append(ix.nodes, node{})
	}
	if !ix.built || version-ix.seen > uint64(s.Slots()) ||
		!s.ChangedSince(ix.seen, func(slot columns.Slot) { ix.update(s, slot) }) {
		ix.rebuild(s)
	}
	ix.built, ix.seen = true, version
}

// rebuild judges every node and orders each bucket once.
func (ix *index) rebuild(s *columns.State) {
	clear(ix.nodes)
	clear(ix.refused)
	ix.feasible, ix.buckets = 0, nil
	for slot := range columns.Slot(s.Slots()) {
		if !s.Known(slot) {
			continue
		}
		v := ix.judge.node(s, s.Node(slot))
		if v.refusal != 0 {
			ix.refuse(slot, v.refusal)
			continue
		}
		h := ix.bucket(v.traits)
		ix.nodes[slot].bucket = int32(v.traits) + 1
		*h = append(*h, item{rank: v.rank, slot: slot})
		ix.feasible++
	}
	for i := range ix.buckets {
		ix.buckets[i].order(ix.nodes)
	}
}

// update judges one node anew.
func (ix *index) update(s *columns.State, slot columns.Slot) {
	if !s.Known(slot) {
		ix.withdraw(slot)
		return
	}
	v := ix.judge.node(s, s.Node(slot))
	n := &ix.nodes[slot]
	switch {
	case v.refusal == 0 && n.bucket == int32(v.traits)+1:
		ix.buckets[v.traits].change(ix.nodes, n.at, v.rank)
		return
	case v.refusal != 0 && v.refusal == n.refusal:
		return
	}
	ix.withdraw(slot)
	ix.place(slot, v)
}

// place notes the verdict on a node that stands nowhere.
func (ix *index) place(slot columns.Slot, v verdict) {
	if v.refusal != 0 {
		ix.refuse(slot, v.refusal)
		return
	}
	ix.nodes[slot].bucket = int32(v.traits) + 1
	ix.bucket(v.traits).push(ix.nodes, item{rank: v.rank, slot: slot})
	ix.feasible++
}

func (ix *index) refuse(slot columns.Slot, id refusalID) {
	ix.nodes[slot].refusal = id
	ix.refused.add(id, 1)
}

// withdraw takes a node out of where it stands.
func (ix *index) withdraw(slot columns.Slot) {
	n := ix.nodes[slot]
	ix.nodes[slot] = node{}
	if n.bucket != 0 {
		ix.buckets[n.bucket-1].remove(ix.nodes, n.at)
		ix.feasible--
	}
	ix.refused.add(n.refusal, -1)
}

// bucket returns the heap of the feasible nodes of these traits.
func (ix *index) bucket(t traitsID) *heap {
	for len(ix.buckets) <= int(t) {
		ix.buckets = append(ix.buckets, nil)
	}
	return &ix.buckets[t]
}

// best compares the tops of the buckets.
func (ix *index) best() (Choice, bool) {
	ix.tops = ix.tops[:0]
	for t, h := range ix.buckets {
		if len(h) > 0 {
			ix.tops = append(ix.tops, candidate{traits: traitsID(t), item: h[0]})
		}
	}
	choice, ok := ix.judge.pick(ix.tops)
	choice.Feasible = ix.feasible
	return choice, ok
}
