package class

import "keelson.dev/services/scheduler/internal/columns"

// item is a node in a heap. There are as many as nodes times classes, so the rank is in two halves: 12 bytes, not 16.
type item struct {
	high, low uint32
	slot      columns.Slot
}

func newItem(rank uint64, slot columns.Slot) item {
	return item{high: uint32(rank >> 32), low: uint32(rank), slot: slot}
}

func (it item) rank() uint64 { return uint64(it.high)<<32 | uint64(it.low) }

// before reports whether the item is to be taken before another one. No two nodes are equal, so that what is in front
// is the same in whatever order the nodes came.
func (it item) before(other item) bool {
	return it.rank() > other.rank() || it.rank() == other.rank() && it.slot < other.slot
}

// heap has the item in front that is before all others. Each item has four children: they share a cache line, and the
// heap is half as deep as a binary one. Every move is noted in the nodes' at.
type heap []item

const children = 4

func (h heap) set(nodes []node, at int32, it item) {
	h[at] = it
	nodes[it.slot].at = at
}

// order makes a heap of items in any order.
func (h heap) order(nodes []node) {
	for at := int32(len(h)) - 1; at >= 0; at-- {
		h.down(nodes, at)
	}
}

func (h *heap) push(nodes []node, it item) {
	*h = append(*h, it)
	h.up(nodes, int32(len(*h)-1))
}

func (h *heap) remove(nodes []node, at int32) {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	if int(at) < len(*h) {
		h.replace(nodes, at, last)
	}
}

// change gives the item a new rank.
func (h heap) change(nodes []node, at int32, rank uint64) {
	if h[at].rank() != rank {
		h.replace(nodes, at, newItem(rank, h[at].slot))
	}
}

func (h heap) replace(nodes []node, at int32, it item) {
	h.set(nodes, at, it)
	if at > 0 && it.before(h[(at-1)/children]) {
		h.up(nodes, at)
		return
	}
	h.down(nodes, at)
}

func (h heap) up(nodes []node, at int32) {
	it := h[at]
	for at > 0 {
		parent := (at - 1) / children
		if !it.before(h[parent]) {
			break
		}
		h.set(nodes, at, h[parent])
		at = parent
	}
	h.set(nodes, at, it)
}

func (h heap) down(nodes []node, at int32) {
	it := h[at]
	for {
		first := children*at + 1
		if first >= int32(len(h)) {
			break
		}
		best := first
		for child := first + 1; child < min(first+children, int32(len(h))); child++ {
			if h[child].before(h[best]) {
				best = child
			}
		}
		if !h[best].before(it) {
			break
		}
		h.set(nodes, at, h[best])
		at = best
	}
	h.set(nodes, at, it)
}
