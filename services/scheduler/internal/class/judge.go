package class

import (
	"math/bits"
	"slices"
	"strings"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

const (
	maxReasons = 32
	maxTraits  = 4
)

// traits are the raw scores that nodes of one shape share, in the order of the class's shape scores.
type traits [maxTraits]int64

// verdict is what a class thinks of one node.
type verdict struct {
	reasons rules.Reasons // 0 when it can take a Pod
	traits  traits
	rank    uint64 // orders nodes of equal traits: room score, fewest Pods, tie-break
}

// judge applies the filters and scores of a class.
type judge struct {
	shape  []offsetFilter
	room   []offsetFilter
	scores []*rules.Score // those over shapes; the i-th makes trait i
	own    []*rules.Score // those over room
	texts  []string       // by bit of verdict.reasons
	byName bool           // whether nodes of one shape may be judged differently by it

	verdicts map[columns.ShapeID]verdict
}

// offsetFilter is a filter and the place of its reasons among those of the class.
type offsetFilter struct {
	*rules.Filter
	offset int
}

func newJudge(j rules.Judgement) judge {
	out := judge{verdicts: map[columns.ShapeID]verdict{}}
	for _, f := range j.Filters {
		at := offsetFilter{Filter: f, offset: len(out.texts)}
		out.texts = append(out.texts, f.Texts...)
		if f.Shape != nil {
			out.shape = append(out.shape, at)
		} else {
			out.room = append(out.room, at)
		}
		out.byName = out.byName || f.ByName
	}
	for _, s := range j.Scores {
		if s.Shape != nil {
			out.scores = append(out.scores, s)
		} else {
			out.own = append(out.own, s)
		}
		out.byName = out.byName || s.ByName
	}
	if len(out.texts) > maxReasons || len(out.scores) > maxTraits {
		panic("class: more rules than a verdict has room for")
	}
	return out
}

// node judges one node that has a Node object.
func (j *judge) node(s *columns.State, slot columns.Slot) verdict {
	v := j.byShape(s, slot)
	if v.reasons != 0 {
		return v
	}
	for i := range j.room {
		if r := j.room[i].Room(s, slot); r != 0 {
			v.reasons = r << j.room[i].offset
			return v
		}
	}
	var score int64
	for _, own := range j.own {
		score += own.Weight * own.Room(s, slot)
	}
	v.rank = rank(score, s.Room(slot).Used[columns.Pods], s.Tie(slot))
	return v
}

// byShape judges what does not depend on room, and does so once per shape where the name does not matter.
func (j *judge) byShape(s *columns.State, slot columns.Slot) verdict {
	id := s.ShapeOf(slot)
	if !j.byName {
		if v, ok := j.verdicts[id]; ok {
			return v
		}
	}
	v := j.view(s.View(slot))
	if !j.byName {
		if len(j.verdicts) > 2*s.Shapes()+16 {
			clear(j.verdicts) // mostly shapes that are gone
		}
		j.verdicts[id] = v
	}
	return v
}

func (j *judge) view(view columns.View) verdict {
	var v verdict
	for i := range j.shape {
		if r := j.shape[i].Shape(view); r != 0 {
			v.reasons = r << j.shape[i].offset
			return v
		}
	}
	for i, score := range j.scores {
		v.traits[i] = score.Shape(view)
	}
	return v
}

// candidate is a node that can take a Pod.
type candidate struct {
	traits traits
	item   item
}

// pick returns the best of the candidates. Raw scores are normalized among them.
func (j *judge) pick(among []candidate) (Choice, bool) {
	if len(among) == 0 {
		return Choice{}, false
	}
	var greatest traits
	for i := range among {
		for t := range j.scores {
			greatest[t] = max(greatest[t], among[i].traits[t])
		}
	}
	var (
		top  item
		best int64 = -1
	)
	for i := range among {
		c := &among[i]
		total := rankScore(c.item.rank)
		for t, score := range j.scores {
			total += score.Weight * score.Order.Normalize(c.traits[t], greatest[t])
		}
		if total > best || total == best && rankRest(c.item.rank) > rankRest(top.rank) {
			best, top = total, c.item
		}
	}
	return Choice{Slot: top.slot, Score: best, Feasible: len(among)}, true
}

const (
	podsBits = 16
	tieBits  = 24
)

// rank packs what orders nodes of equal traits into one word: the greater, the better.
func rank(score, pods int64, tie uint32) uint64 {
	few := uint64(1<<podsBits - 1 - min(pods, 1<<podsBits-1))
	return uint64(score)<<(podsBits+tieBits) | few<<tieBits | uint64(tie>>(32-tieBits))
}

// rankScore is the room score of a rank.
func rankScore(rank uint64) int64 { return int64(rank >> (podsBits + tieBits)) }

// rankRest is what decides between nodes of equal scores.
func rankRest(rank uint64) uint64 { return rank & (1<<(podsBits+tieBits) - 1) }

// reasons returns the counted texts, sorted; extra ones are added to those of the same text.
func (j *judge) reasons(counts []int, extra []Reason) []Reason {
	out := slices.Clone(extra)
	for bit, n := range counts[:len(j.texts)] {
		if n == 0 {
			continue
		}
		text := j.texts[bit]
		if i := slices.IndexFunc(out, func(r Reason) bool { return r.Text == text }); i >= 0 {
			out[i].Nodes += n
		} else {
			out = append(out, Reason{Text: text, Nodes: n})
		}
	}
	slices.SortFunc(out, func(a, b Reason) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// count adds delta to the count of each reason.
func count(counts []int, reasons rules.Reasons, delta int) {
	for r := uint32(reasons); r != 0; r &= r - 1 {
		counts[bits.TrailingZeros32(r)] += delta
	}
}
