package queue

import "container/heap"

// entries is a heap of entries that know their position in it.
type entries struct {
	before func(a, b *Entry) bool
	list   []*Entry
}

func (e *entries) first() *Entry {
	if len(e.list) == 0 {
		return nil
	}
	return e.list[0]
}

func (e *entries) push(entry *Entry)   { heap.Push((*order)(e), entry) }
func (e *entries) remove(entry *Entry) { heap.Remove((*order)(e), entry.position) }

// order is the heap.Interface of entries.
type order entries

func (o *order) Len() int           { return len(o.list) }
func (o *order) Less(i, j int) bool { return o.before(o.list[i], o.list[j]) }

func (o *order) Swap(i, j int) {
	o.list[i], o.list[j] = o.list[j], o.list[i]
	o.list[i].position, o.list[j].position = i, j
}

func (o *order) Push(x any) {
	e := x.(*Entry)
	e.position = len(o.list)
	o.list = append(o.list, e)
}

func (o *order) Pop() any {
	last := o.list[len(o.list)-1]
	o.list[len(o.list)-1] = nil
	o.list = o.list[:len(o.list)-1]
	return last
}
