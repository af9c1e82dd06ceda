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
	refused  tally
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
func (x *index) catchUp(s *columns.State) {
	version := s.Version()
	if x.built && x.seen == version {
		return
	}
	for len(x.nodes) < s.Slots() {
		x.nodes = append(x.nodes, node{})
	}
	if !x.built || version-x.seen > uint64(s.Slots()) ||
		!s.ChangedSince(x.seen, func(slot columns.Slot) { x.update(s, slot) }) {
		x.rebuild(s)
	}
	x.built, x.seen = true, version
}

// rebuild judges every node and orders each bucket once.
func (x *index) rebuild(s *columns.State) {
	clear(x.nodes)
	clear(x.refused)
	x.feasible, x.buckets = 0, nil
	for slot := range columns.Slot(s.Slots()) {
		if !s.Known(slot) {
			continue
		}
		v := x.judge.node(s, s.Node(slot))
		if v.refusal != 0 {
			x.refuse(slot, v.refusal)
			continue
		}
		h := x.bucket(v.traits)
		x.nodes[slot].bucket = int32(v.traits) + 1
		*h = append(*h, item{rank: v.rank, slot: slot})
		x.feasible++
	}
	for i := range x.buckets {
		x.buckets[i].order(x.nodes)
	}
}

// update judges one node anew.
func (x *index) update(s *columns.State, slot columns.Slot) {
	if !s.Known(slot) {
		x.withdraw(slot)
		return
	}
	v := x.judge.node(s, s.Node(slot))
	n := &x.nodes[slot]
	switch {
	case v.refusal == 0 && n.bucket == int32(v.traits)+1:
		x.buckets[v.traits].change(x.nodes, n.at, v.rank)
		return
	case v.refusal != 0 && v.refusal == n.refusal:
		return
	}
	x.withdraw(slot)
	x.place(slot, v)
}

// place notes the verdict on a node that stands nowhere.
func (x *index) place(slot columns.Slot, v verdict) {
	if v.refusal != 0 {
		x.refuse(slot, v.refusal)
		return
	}
	x.nodes[slot].bucket = int32(v.traits) + 1
	x.bucket(v.traits).push(x.nodes, item{rank: v.rank, slot: slot})
	x.feasible++
}

func (x *index) refuse(slot columns.Slot, id refusalID) {
	x.nodes[slot].refusal = id
	x.refused.add(id, 1)
}

// withdraw takes a node out of where it stands.
func (x *index) withdraw(slot columns.Slot) {
	n := x.nodes[slot]
	x.nodes[slot] = node{}
	if n.bucket != 0 {
		x.buckets[n.bucket-1].remove(x.nodes, n.at)
		x.feasible--
	}
	x.refused.add(n.refusal, -1)
}

// bucket returns the heap of the feasible nodes of these traits.
func (x *index) bucket(t traitsID) *heap {
	for len(x.buckets) <= int(t) {
		x.buckets = append(x.buckets, nil)
	}
	return &x.buckets[t]
}

// best compares the tops of the buckets.
func (x *index) best() (Choice, bool) {
	x.tops = x.tops[:0]
	for t, h := range x.buckets {
		if len(h) > 0 {
			x.tops = append(x.tops, candidate{traits: traitsID(t), item: h[0]})
		}
	}
	choice, ok := x.judge.pick(x.tops)
	choice.Feasible = x.feasible
	return choice, ok
}
