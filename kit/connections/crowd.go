package connections

// crowd are connections by whose they are, each owner's from the oldest to the newest.
type crowd struct {
	most, size int
	added      uint64
	owners     map[string]*row
}

// row are the connections of one owner.
type row struct {
	oldest, newest *conn
	length         int
}

func newCrowd(most int) crowd { return crowd{most: most, owners: map[string]*row{}} }

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

// surplus is the connection that is to be closed because there are too many, the oldest of who has the most; nil if
// there are not.
func (w *crowd) surplus() *conn {
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
