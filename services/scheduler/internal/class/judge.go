package class

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// refusalID names a refusal of a judge; 0 is none.
type refusalID int32

// refusal is the filter that refuses a node, the first of those that do, and its reasons.
type refusal struct {
	filter  *rules.Filter
	reasons rules.Reasons
}

// traitsID names a combination of raw scores that nodes share, one of each score by their description.
type traitsID int32

// verdict is what a class thinks of one node.
type verdict struct {
	refusal refusalID // 0 when it can take a Pod
	traits  traitsID
	rank    uint64 // orders nodes of equal traits: room score, fewest Pods, tie-break
}

// judge applies the filters and scores of a class. It numbers refusals and traits as it meets them: there are few,
// however many nodes there are.
type judge struct {
	shape  []*rules.Filter
	room   []*rules.Filter
	scores []*rules.Score // those over shapes; the i-th makes trait i
	images []*rules.Score // those over images; they make the traits behind
	own    []*rules.Score // those over room
	shared []*rules.Score // those that are normalized: scores, images, and behind them those over domains
	domain domains
	pins   *rules.Filter // the first filter that knows by name which nodes it lets pass
	named  bool          // whether nodes of one shape may be judged differently by it

	refusals   []refusal // by refusalID
	refusalIDs map[refusal]refusalID
	traits     [][]int64 // by traitsID
	traitsIDs  map[string]traitsID
	imagedIDs  map[string]traitsID // by the traits of the shape and the images
	verdicts   map[columns.ShapeID]verdict

	// What the last call left behind, to be used again.
	key             []byte
	rows            []int64
	least, greatest []int64
	known, here     []columns.Image
}

func newJudge(j rules.Judgement) judge {
	out := judge{
		refusals: make([]refusal, 1), refusalIDs: map[refusal]refusalID{},
		traitsIDs: map[string]traitsID{}, imagedIDs: map[string]traitsID{}, verdicts: map[columns.ShapeID]verdict{},
	}
	numbers := numbering{}
	for _, f := range j.Filters {
		switch f.Judge.On() {
		case rules.OnRoom:
			out.room = append(out.room, f)
		case rules.OnDomain:
			out.domain.filters = append(out.domain.filters, of(&out.domain, numbers, f, f.Judge))
		default:
			out.shape = append(out.shape, f)
		}
		if f.Pins != nil && out.pins == nil {
			out.pins = f
		}
		out.named = out.named || f.Judge.On() == rules.OnName
	}
	var spread []*rules.Score
	for _, s := range j.Scores {
		switch s.Judge.On() {
		case rules.OnRoom:
			out.own = append(out.own, s)
		case rules.OnDomain:
			out.domain.scores = append(out.domain.scores, of(&out.domain, numbers, s, s.Judge))
			spread = append(spread, s)
		case rules.OnImages:
			out.images = append(out.images, s)
		default:
			out.scores = append(out.scores, s)
		}
		out.named = out.named || s.Judge.On() == rules.OnName
	}
	out.shared = slices.Concat(out.scores, out.images, spread)
	return out
}

// node judges one node that has a Node object, as it is or as it would be, by all but its domains.
func (j *judge) node(s *columns.State, n columns.Node) verdict {
	v := j.byShape(s, n.Slot())
	if v.refusal != 0 {
		return v
	}
	for _, f := range j.room {
		if r := f.Judge.Node(n); r != 0 {
			v.refusal = j.refusal(f, r)
			return v
		}
	}
	var score int64
	for _, own := range j.own {
		score += own.Weight * own.Judge.Node(n)
	}
	v.rank = rank(score, n.Room().Used[columns.Pods], s.Tie(n.Slot()))
	v.traits = j.imaged(s, v.traits, n.Slot())
	return v
}

// byShape judges what does not depend on room, and does so once per shape where the name does not matter.
func (j *judge) byShape(s *columns.State, slot columns.Slot) verdict {
	if j.named {
		return j.view(s.View(slot))
	}
	id := s.ShapeOf(slot)
	if v, ok := j.verdicts[id]; ok {
		return v
	}
	v := j.view(s.View(slot))
	if len(j.verdicts) > 2*s.Shapes()+16 {
		clear(j.verdicts) // mostly shapes that are gone
	}
	j.verdicts[id] = v
	return v
}

func (j *judge) view(view columns.View) verdict {
	for _, f := range j.shape {
		if r := f.Judge.View(view); r != 0 {
			return verdict{refusal: j.refusal(f, r)}
		}
	}
	j.key = j.key[:0]
	for _, score := range j.scores {
		j.key = binary.BigEndian.AppendUint64(j.key, uint64(score.Judge.View(view)))
	}
	return verdict{traits: j.traitsOf(j.key)}
}

// refusal returns the number of a refusal.
func (j *judge) refusal(f *rules.Filter, reasons rules.Reasons) refusalID {
	key := refusal{filter: f, reasons: reasons}
	id, ok := j.refusalIDs[key]
	if !ok {
		id = refusalID(len(j.refusals))
		j.refusals = append(j.refusals, key)
		j.refusalIDs[key] = id
	}
	return id
}

// traitsOf returns the number of raw scores, of which the key holds eight bytes each.
func (j *judge) traitsOf(key []byte) traitsID {
	id, ok := j.traitsIDs[string(key)]
	if !ok {
		id = traitsID(len(j.traits))
		raw := make([]int64, len(j.scores))
		for t := range raw {
			raw[t] = int64(binary.BigEndian.Uint64(key[8*t:]))
		}
		j.traits = append(j.traits, raw)
		j.traitsIDs[string(key)] = id
	}
	return id
}

// unrated is the raw score of a node that has none.
const unrated = math.MinInt64

// candidate is a node that can take a Pod, the best of some, with its raw scores of judge.shared.
type candidate struct {
	raw   []int64
	item  item
	nodes int // how many it stands for
	bonus int64
}

// pick returns the best of the candidates. Raw scores are normalized among them.
func (j *judge) pick(s *columns.State, among []candidate) (Choice, bool) {
	if len(among) == 0 {
		return Choice{}, false
	}
	j.rate(s, among)
	var (
		top      item
		best     int64 = -1
		feasible int
	)
	j.extremes(among)
	for i := range among {
		c := &among[i]
		feasible += c.nodes
		total := rankScore(c.item.rank()) + c.bonus
		for t, score := range j.shared {
			if c.raw[t] != unrated {
				total += score.Weight * score.Order.Normalize(c.raw[t], j.least[t], j.greatest[t])
			}
		}
		if total > best || total == best && c.item.rest().before(top.rest()) {
			best, top = total, c.item
		}
	}
	return Choice{Slot: top.slot, Score: best, Feasible: feasible}, true
}

// extremes finds the least and the greatest of each raw score.
func (j *judge) extremes(among []candidate) {
	j.least, j.greatest = j.least[:0], j.greatest[:0]
	for range j.shared {
		j.least, j.greatest = append(j.least, math.MaxInt64), append(j.greatest, math.MinInt64)
	}
	for i := range among {
		for t, raw := range among[i].raw {
			if raw != unrated {
				j.least[t], j.greatest[t] = min(j.least[t], raw), max(j.greatest[t], raw)
			}
		}
	}
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

// rest is what decides between nodes of equal scores.
func (it item) rest() item { return newItem(it.rank()&(1<<(podsBits+tieBits)-1), it.slot) }

// reasons returns the texts of the refusals, counted by refusalID, sorted; extra ones are added to those of the same
// text.
func (j *judge) reasons(counts []int, extra ...Reason) []Reason {
	out := slices.Clone(extra)
	for id, n := range counts {
		if n == 0 {
			continue
		}
		r := j.refusals[id]
		for left := uint64(r.reasons); left != 0; left &= left - 1 {
			text := r.filter.Texts[bits.TrailingZeros64(left)]
			if i := slices.IndexFunc(out, func(r Reason) bool { return r.Text == text }); i >= 0 {
				out[i].Nodes += n
			} else {
				out = append(out, Reason{Text: text, Nodes: n})
			}
		}
	}
	slices.SortFunc(out, func(a, b Reason) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// refusalCounts counts nodes by refusal.
type refusalCounts []int

func (c *refusalCounts) add(id refusalID, nodes int) {
	if id == 0 {
		return
	}
	for len(*c) <= int(id) {
		*c = append(*c, 0)
	}
	(*c)[id] += nodes
}
