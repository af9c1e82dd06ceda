package class

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// index holds the verdicts of a class on all nodes.
type index struct {
	judge    *judge
	built    bool
	seen     uint64 // the version of the State up to which it is right
	nodes    []node // by slot
	buckets  []bucket
	byTraits map[traits]int32
	counts   [maxReasons]int // nodes by reason
	feasible int
	tops     []candidate // scratch of best
}

// node says where a node stands: in a bucket, or refused for reasons; neither when it has no Node object.
type node struct {
	reasons rules.Reasons
	bucket  int32 // 1 + index of the bucket, 0 for none
	at      int32 // position in the bucket's heap
}

// bucket is the feasible nodes of equal traits.
type bucket struct {
	traits traits
	heap   heap
}

func newIndex(j *judge) *index {
	return &index{judge: j, byTraits: map[traits]int32{}}
}

// catchUp judges the nodes that changed since the last call, or all.
func (x *index) catchUp(s *columns.State) {
	version := s.Version()
	if x.built && x.seen == version {
		return
	}
	for len(x.nodes) < s.Slots() {
		x.nodes = append(x.nodes, node{})
	}
	if !x.built || version-x.seen > uint64(s.Slots()) || !s.ChangedSince(x.seen, func(slot columns.Slot) { x.update(s, slot) }) {
		x.rebuild(s)
	}
	x.built, x.seen = true, version
}

// rebuild judges every node and orders each bucket once.
func (x *index) rebuild(s *columns.State) {
	clear(x.nodes)
	clear(x.byTraits)
	x.counts, x.feasible, x.buckets = [maxReasons]int{}, 0, nil
	for slot := range columns.Slot(s.Slots()) {
		if !s.Known(slot) {
			continue
		}
		v := x.judge.node(s, slot)
		if v.reasons != 0 {
			x.refuse(slot, v.reasons)
			continue
		}
		b := x.bucket(v.traits)
		x.nodes[slot] = node{bucket: b + 1, at: int32(len(x.buckets[b].heap))}
		x.buckets[b].heap = append(x.buckets[b].heap, item{rank: v.rank, slot: slot})
		x.feasible++
	}
	for i := range x.buckets {
		x.buckets[i].heap.order(x.nodes)
	}
}

// update judges one node anew.
func (x *index) update(s *columns.State, slot columns.Slot) {
	if !s.Known(slot) {
		x.withdraw(slot)
		return
	}
	v := x.judge.node(s, slot)
	n := &x.nodes[slot]
	if v.reasons == 0 && n.bucket != 0 {
		if b := &x.buckets[n.bucket-1]; b.traits == v.traits {
			b.heap.change(x.nodes, n.at, v.rank)
			return
		}
	}
	if v.reasons != 0 && v.reasons == n.reasons {
		return
	}
	x.withdraw(slot)
	x.place(slot, v)
}

// place notes the verdict on a node that stands nowhere.
func (x *index) place(slot columns.Slot, v verdict) {
	if v.reasons != 0 {
		x.refuse(slot, v.reasons)
		return
	}
	b := x.bucket(v.traits)
	x.nodes[slot].bucket = b + 1
	x.buckets[b].heap.push(x.nodes, item{rank: v.rank, slot: slot})
	x.feasible++
}

func (x *index) refuse(slot columns.Slot, reasons rules.Reasons) {
	x.nodes[slot].reasons = reasons
	count(x.counts[:], reasons, 1)
}

// withdraw takes a node out of where it stands.
func (x *index) withdraw(slot columns.Slot) {
	n := x.nodes[slot]
	x.nodes[slot] = node{}
	if n.bucket != 0 {
		x.buckets[n.bucket-1].heap.remove(x.nodes, n.at)
		x.feasible--
	}
	count(x.counts[:], n.reasons, -1)
}

func (x *index) bucket(t traits) int32 {
	if b, ok := x.byTraits[t]; ok {
		return b
	}
	b := int32(len(x.buckets))
	x.buckets = append(x.buckets, bucket{traits: t})
	x.byTraits[t] = b
	return b
}

// best compares the tops of the buckets.
func (x *index) best() (Choice, bool) {
	x.tops = x.tops[:0]
	for i := range x.buckets {
		if b := &x.buckets[i]; len(b.heap) > 0 {
			x.tops = append(x.tops, candidate{traits: b.traits, item: b.heap[0]})
		}
	}
	choice, ok := x.judge.pick(x.tops)
	choice.Feasible = x.feasible
	return choice, ok
}
