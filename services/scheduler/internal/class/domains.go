package class

import (
	"encoding/binary"
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// bucketID names nodes that differ in nothing but their room: they have equal traits, and one cell in each count. In a
// class that looks at no domains it is the traitsID.
type bucketID int32

type bucket struct {
	traits traitsID
	cells  []columns.Cell
}

// domains is what a class judges by the domains of nodes. A bucket is judged as a whole, and only when the class is
// asked: a count that changes costs nothing before.
type domains struct {
	filters []overDomains[*rules.Filter]
	scores  []overDomains[*rules.Score]
	counts  []columns.Count
	tables  []*columns.Domains // by count; nil before the first question

	buckets   []bucket // by bucketID
	bucketIDs map[string]bucketID
	seen      uint64 // the sum of the versions at the last call of changed

	kept      []columns.Domain // of each candidate, by count
	keptCells []columns.Cell

	// What the last call left behind, to be used again.
	key      []byte
	all, few []columns.Domain
	cells    []columns.Cell
	rounds   []uint64 // by cell, the last round that saw it
	round    uint64
}

// overDomains is a filter or a score and the counts that it looks at.
type overDomains[T any] struct {
	it     T
	counts []int
}

// numbering is the places of a class's counts while it is made. There may be as many as terms of all Pods that select
// it, whichever Pods carry them.
type numbering map[columns.Identity]int

// of numbers the counts of a judgement, equal ones alike.
func of[T, R any](d *domains, numbers numbering, it T, judge rules.Judge[R]) overDomains[T] {
	out := overDomains[T]{it: it}
	for _, c := range judge.Counts() {
		id := c.Identity()
		i, known := numbers[id]
		if !known {
			i = len(d.counts)
			numbers[id] = i
			d.counts = append(d.counts, c)
		}
		out.counts = append(out.counts, i)
	}
	return out
}

// any reports whether the class looks at domains.
func (d *domains) any() bool { return len(d.counts) > 0 }

// acquire sees to it that the counts are kept.
func (d *domains) acquire(s *columns.State) {
	if d.tables != nil || !d.any() {
		return
	}
	for _, c := range d.counts {
		d.tables = append(d.tables, s.Domains(c))
	}
	d.all = make([]columns.Domain, len(d.counts))
	d.bucketIDs = map[string]bucketID{}
}

// release gives the counts back.
func (d *domains) release() {
	for _, table := range d.tables {
		table.Release()
	}
	d.tables = nil
	d.forget()
}

// forget drops the buckets; no node may stand in one.
func (d *domains) forget() {
	d.buckets = nil
	clear(d.bucketIDs)
}

// changed reports whether a count changed since the last call.
func (d *domains) changed() bool {
	if d.tables == nil {
		return d.any()
	}
	before := d.seen
	d.seen = 0
	for _, table := range d.tables {
		d.seen += table.Version()
	}
	return d.seen != before
}

// bucket returns the bucket of a node of these traits.
func (d *domains) bucket(traits traitsID, slot columns.Slot) bucketID {
	if !d.any() {
		return bucketID(traits)
	}
	d.key = binary.AppendUvarint(d.key[:0], uint64(traits))
	for _, table := range d.tables {
		d.key = binary.AppendUvarint(d.key, uint64(table.Cell(slot)))
	}
	id, ok := d.bucketIDs[string(d.key)]
	if !ok {
		id = bucketID(len(d.buckets))
		b := bucket{traits: traits}
		for _, table := range d.tables {
			b.cells = append(b.cells, table.Cell(slot))
		}
		d.buckets = append(d.buckets, b)
		d.bucketIDs[string(d.key)] = id
	}
	return id
}

// pick returns the domains of these counts.
func (d *domains) pick(all []columns.Domain, counts []int) []columns.Domain {
	d.few = d.few[:0]
	for _, i := range counts {
		d.few = append(d.few, all[i])
	}
	return d.few
}

// judgeBucket judges all nodes of a bucket by their domains.
func (j *judge) judgeBucket(id bucketID) refusalID {
	if !j.domain.any() {
		return 0
	}
	b := &j.domain.buckets[id]
	for i, cell := range b.cells {
		j.domain.all[i] = j.domain.tables[i].At(cell)
	}
	return j.judgeDomains()
}

// judgeWhole judges a single node, as it is or as it would be, by its domains too.
func (j *judge) judgeWhole(s *columns.State, n columns.Node) verdict {
	j.domain.acquire(s)
	v := j.node(s, n)
	if v.refusal != 0 {
		return v
	}
	v.refusal = j.byDomains(n)
	return v
}

// byDomains judges a single node by its domains: with the Pods that are expected there, and as it would be if they did
// not come.
func (j *judge) byDomains(n columns.Node) refusalID {
	if n.Expects() {
		for i, table := range j.domain.tables {
			j.domain.all[i] = n.Expected(table)
		}
		if r := j.judgeDomains(); r != 0 {
			return r
		}
	}
	for i, table := range j.domain.tables {
		j.domain.all[i] = n.Domain(table)
	}
	return j.judgeDomains()
}

func (j *judge) judgeDomains() refusalID {
	d := &j.domain
	for i := range d.filters {
		f := d.filters[i].it
		if r := f.Judge.Domains(d.pick(d.all, d.filters[i].counts)); r != 0 {
			return j.refusal(f, r)
		}
	}
	return 0
}

// start forgets what was kept.
func (d *domains) start() { d.kept, d.keptCells = d.kept[:0], d.keptCells[:0] }

// keep notes the domains of a node, or of all nodes of a bucket, that can take a Pod: those of the last call of
// judgeDomains.
func (d *domains) keep(cells []columns.Cell) {
	if len(d.scores) > 0 {
		d.kept, d.keptCells = append(d.kept, d.all...), append(d.keptCells, cells...)
	}
}

// keepNode is keep for a single node.
func (d *domains) keepNode(slot columns.Slot) {
	d.cells = d.cells[:0]
	for _, table := range d.tables {
		d.cells = append(d.cells, table.Cell(slot))
	}
	d.keep(d.cells)
}

// rate gives each candidate its raw scores by images and by domains, behind the others. The candidates are in the order
// of keep.
func (j *judge) rate(s *columns.State, among []candidate) {
	d, width := &j.domain, len(j.shared)
	if len(d.scores)+len(j.images) == 0 {
		return
	}
	j.rows = slices.Grow(j.rows[:0], len(among)*width)[:len(among)*width]
	for i := range among {
		row := j.rows[i*width : (i+1)*width]
		copy(row, among[i].raw)
		among[i].raw = row
	}
	for i, score := range j.images {
		j.rateImages(s, score, len(j.scores)+i, among)
	}
	for i := range d.scores {
		j.rateBy(&d.scores[i], len(j.scores)+len(j.images)+i, among)
	}
}

// rateBy gives each candidate the raw score at a place of its row.
func (j *judge) rateBy(score *overDomains[*rules.Score], at int, among []candidate) {
	d, all := &j.domain, len(j.domain.counts)
	if score.it.Order == rules.EvenIsBest {
		d.sizes(score, among)
	}
	for i := range among {
		few := d.pick(d.kept[i*all:(i+1)*all], score.counts)
		if score.it.InAll && outside(few) {
			among[i].raw[at] = unrated
			continue
		}
		among[i].raw[at] = score.it.Judge.Domains(few)
	}
}

func outside(domains []columns.Domain) bool {
	for i := range domains {
		if !domains[i].Exists {
			return true
		}
	}
	return false
}

// sizes says in each kept domain that the score looks at how many of its key there are among the candidates.
func (d *domains) sizes(score *overDomains[*rules.Score], among []candidate) {
	all := len(d.counts)
	for _, count := range score.counts {
		d.round++
		size := 0
		for i := range among {
			if score.it.InAll && outside(d.pick(d.kept[i*all:(i+1)*all], score.counts)) {
				continue
			}
			if d.tables[count].ByHost() {
				size += among[i].nodes
			} else if d.first(d.keptCells[i*all+count]) {
				size++
			}
		}
		for i := range among {
			d.kept[i*all+count].Among = size
		}
	}
}

// first reports whether the cell is seen for the first time in this round.
func (d *domains) first(c columns.Cell) bool {
	for len(d.rounds) <= int(c) {
		d.rounds = append(d.rounds, 0)
	}
	before := d.rounds[c]
	d.rounds[c] = d.round
	return before != d.round
}
