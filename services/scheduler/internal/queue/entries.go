package queue

import "container/heap"

// entries is a heap of entries that know their position in it.
type entries struct {
	before func(a, b *Entry) bool
	list   []*Entry
}

func (h *entries) first() *Entry {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}

func (h *entries) push(e *Entry)   { heap.Push((*order)(h), e) }
func (h *entries) remove(e *Entry) { heap.Remove((*order)(h), e.position) }

// order is the heap.Interface of entries.
type order entries

func (h *order) Len() int           { return len(h.list) }
func (h *order) Less(i, j int) bool { return h.before(h.list[i], h.list[j]) }

func (h *order) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].position, h.list[j].position = i, j
}

func (h *order) Push(x any) {
	e := x.(*Entry)
	e.position = len(h.list)
	h.list = append(h.list, e)
}

func (h *order) Pop() any {
	last := h.list[len(h.list)-1]
	h.list[len(h.list)-1] = nil
	h.list = h.list[:len(h.list)-1]
	return last
}
