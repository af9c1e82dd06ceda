package connections

import (
	"cmp"
	"container/list"
)

// crowd are connections by whose they are, each owner's from the oldest to the newest.
type crowd struct {
	// most is how many there may be, each how many of one owner.
	most, each int
	size       int
	added      uint64
	owners     map[string]*list.List
}

// part says which fraction of what there may be one owner may have where nothing else is said.
const part = 4

func newCrowd(most, each int) crowd {
	return crowd{most: most, each: cmp.Or(each, max(most/part, 1)), owners: map[string]*list.List{}}
}

func (w *crowd) add(c *conn) {
	of := w.owners[c.owner]
	if of == nil {
		of = list.New()
		w.owners[c.owner] = of
	}
	w.size++
	w.added++
	c.in, c.number, c.place = w, w.added, of.PushBack(c)
}

func (w *crowd) remove(c *conn) {
	of := w.owners[c.owner]
	if of.Remove(c.place); of.Len() == 0 {
		delete(w.owners, c.owner)
	}
	w.size--
	c.in, c.place = nil, nil
}

// surplus is the connection that is to be closed because there are too many beside the one that came last: the oldest
// of its owner if that has too many, else of the client with the most; nil if there are not too many.
func (w *crowd) surplus(last *conn) *conn {
	if of := w.owners[last.owner]; of.Len() > w.each {
		return oldest(of)
	}
	if w.size <= w.most {
		return nil
	}
	var largest *list.List
	for _, of := range w.owners {
		if largest == nil || of.Len() > largest.Len() ||
			of.Len() == largest.Len() && oldest(of).number < oldest(largest).number {
			largest = of
		}
	}
	return oldest(largest)
}

func oldest(of *list.List) *conn { return of.Front().Value.(*conn) }
