package class

import "keelson.dev/services/scheduler/internal/columns"

// item is a node in a heap.
type item struct {
	rank uint64
	slot columns.Slot
}

// heap has the item of the greatest rank in front. Each item has four children: they share a cache line, and the
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
	if h[at].rank != rank {
		h.replace(nodes, at, item{rank: rank, slot: h[at].slot})
	}
}

func (h heap) replace(nodes []node, at int32, it item) {
	h.set(nodes, at, it)
	if at > 0 && h[(at-1)/children].rank < it.rank {
		h.up(nodes, at)
		return
	}
	h.down(nodes, at)
}

func (h heap) up(nodes []node, at int32) {
	it := h[at]
	for at > 0 {
		parent := (at - 1) / children
		if h[parent].rank >= it.rank {
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
		greatest := first
		for child := first + 1; child < min(first+children, int32(len(h))); child++ {
			if h[child].rank > h[greatest].rank {
				greatest = child
			}
		}
		if h[greatest].rank <= it.rank {
			break
		}
		h.set(nodes, at, h[greatest])
		at = greatest
	}
	h.set(nodes, at, it)
}
