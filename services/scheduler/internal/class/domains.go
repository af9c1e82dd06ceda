package class

import (
	"encoding/binary"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// bucketID names nodes that nothing but their room tells apart: of equal traits, and of one cell in each count. Of a
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

	// What the last call left behind, to be used again.
	key      []byte
	all, few []columns.Domain
}

// overDomains is a filter or a score and the counts that it looks at.
type overDomains[T any] struct {
	it     T
	counts []int
}

// of numbers the counts of a judgement, equal ones alike.
func of[T, R any](d *domains, it T, judge rules.Judge[R]) overDomains[T] {
	out := overDomains[T]{it: it}
	for _, c := range judge.Counts() {
		out.counts = append(out.counts, d.number(c))
	}
	return out
}

func (d *domains) number(c columns.Count) int {
	for i := range d.counts {
		if d.counts[i].Same(c) {
			return i
		}
	}
	d.counts = append(d.counts, c)
	return len(d.counts) - 1
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
func (d *domains) pick(counts []int) []columns.Domain {
	d.few = d.few[:0]
	for _, i := range counts {
		d.few = append(d.few, d.all[i])
	}
	return d.few
}

// judgeBucket judges all nodes of a bucket by their domains and returns their raw scores.
func (j *judge) judgeBucket(id bucketID) (refusalID, []int64) {
	if !j.domain.any() {
		return 0, j.traits[id]
	}
	b := &j.domain.buckets[id]
	for i, cell := range b.cells {
		j.domain.all[i] = j.domain.tables[i].At(cell)
	}
	return j.judgeDomains(b.traits)
}

// judgeWhole judges a single node, as it is or as it would be, by its domains too, and returns its raw scores.
func (j *judge) judgeWhole(s *columns.State, n columns.Node) (verdict, []int64) {
	j.domain.acquire(s)
	v := j.node(s, n)
	if v.refusal != 0 {
		return v, nil
	}
	for i, table := range j.domain.tables {
		j.domain.all[i] = n.Domain(table)
	}
	var raw []int64
	v.refusal, raw = j.judgeDomains(v.traits)
	return v, raw
}

func (j *judge) judgeDomains(traits traitsID) (refusalID, []int64) {
	d := &j.domain
	for i := range d.filters {
		f := d.filters[i].it
		if r := f.Judge.Domains(d.pick(d.filters[i].counts)); r != 0 {
			return j.refusal(f, r), nil
		}
	}
	if len(d.scores) == 0 {
		return 0, j.traits[traits]
	}
	start := len(j.rows)
	j.rows = append(j.rows, j.traits[traits]...)
	for i := range d.scores {
		j.rows = append(j.rows, d.scores[i].it.Judge.Domains(d.pick(d.scores[i].counts)))
	}
	return 0, j.rows[start:]
}
