package connections

import "cmp"

// crowd are connections by whose they are, each owner's from the oldest to the newest.
type crowd struct {
	// most is how many there may be, each how many of one owner.
	most, each int
	size       int
	added      uint64
	owners     map[string]*row
}

// row are the connections of one owner.
type row struct {
	oldest, newest *conn
	length         int
}

func newCrowd(most, each int) crowd {
	return crowd{most: most, each: cmp.Or(each, max(most/part, 1)), owners: map[string]*row{}}
}

func (w *crowd) add(c *conn) {
	of := w.owners[c.owner]
	if of == nil {
		of = &row{}
		w.owners[c.owner] = of
	}
	c.older, c.newer = of.newest, nil
	if of.newest == nil {
		of.oldest = c
	} else {
		of.newest.newer = c
	}
	of.newest = c
	of.length++
	w.size++
	c.in = w
	w.added++
	c.number = w.added
}

func (w *crowd) remove(c *conn) {
	of := w.owners[c.owner]
	if c.older == nil {
		of.oldest = c.newer
	} else {
		c.older.newer = c.newer
	}
	if c.newer == nil {
		of.newest = c.older
	} else {
		c.newer.older = c.older
	}
	if of.length--; of.length == 0 {
		delete(w.owners, c.owner)
	}
	w.size--
	c.in = nil
}

// part says which fraction of what there may be one owner may have where nothing else is said.
const part = 4

// surplus is the connection that is to be closed because there are too many beside the one that came last: the oldest
// of its owner if he has too many, else of who has the most; nil if there are not too many.
func (w *crowd) surplus(last *conn) *conn {
	if of := w.owners[last.owner]; of.length > w.each {
		return of.oldest
	}
	if w.size <= w.most {
		return nil
	}
	var largest *row
	for _, of := range w.owners {
		if largest == nil || of.length > largest.length ||
			of.length == largest.length && of.oldest.number < largest.oldest.number {
			largest = of
		}
	}
	return largest.oldest
}
