package columns

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Segment is how much of a StorageClass can be made for some nodes, in bytes.
type Segment struct {
	Class string
	Nodes labels.Selector
	// Capacity is how much there is in all, Largest the size of the largest volume that can be made of it.
	Capacity, Largest int64
}

// storage is the segments: those that name values of labels, as almost all do, are filed by these, so that neither a
// question about a node nor a change of a segment looks at other nodes or segments.
type storage struct {
	segments map[string]*segment // by the object that describes them
	tuples   map[string]*tuple
	classes  map[string]*classStorage
}

type segment struct {
	Segment
	tuple *tuple // nil where the selector does more than name values
	value string
}

// tuple files nodes by the values of some labels. One of no labels has all nodes.
type tuple struct {
	keys     []string
	segments int
	values   map[Slot]string
	nodes    map[string][]Slot // in the order of the slots
}

type classStorage struct {
	filed  map[*tuple]map[string][]*segment
	others []*segment
}

func newStorage() storage {
	return storage{segments: map[string]*segment{}, tuples: map[string]*tuple{}, classes: map[string]*classStorage{}}
}

// SetStorage notes the segment that an object describes; nil if it is gone or describes none. The nodes of the segment
// have changed then, and no others.
func (s *State) SetStorage(object string, now *Segment) {
	before := s.storage.segments[object]
	if before == nil && now == nil {
		return
	}
	if before != nil && now != nil && before.Class == now.Class && before.Nodes.String() == now.Nodes.String() {
		gain, changed := now.Largest > before.Largest, before.Capacity != now.Capacity || before.Largest != now.Largest
		before.Capacity, before.Largest = now.Capacity, now.Largest
		if changed {
			s.noteSegment(before, gain)
		}
		return
	}
	if before != nil {
		s.noteSegment(before, false)
		s.dropSegment(before)
		delete(s.storage.segments, object)
	}
	if now != nil {
		added := s.fileSegment(*now)
		s.storage.segments[object] = added
		s.noteSegment(added, true)
	}
}

func (s *State) noteSegment(g *segment, gain bool) {
	if g.tuple != nil {
		for _, slot := range g.tuple.nodes[g.value] {
			s.journal.note(slot, gain)
		}
		return
	}
	for slot := range Slot(s.Slots()) {
		if s.Known(slot) && g.Nodes.Matches(nodeLabels{s, slot}) {
			s.journal.note(slot, gain)
		}
	}
}

func (s *State) fileSegment(of Segment) *segment {
	g := &segment{Segment: of}
	class := s.storage.classes[of.Class]
	if class == nil {
		class = &classStorage{filed: map[*tuple]map[string][]*segment{}}
		s.storage.classes[of.Class] = class
	}
	keys, values, plain := namedValues(of.Nodes)
	if !plain {
		class.others = append(class.others, g)
		return g
	}
	g.tuple, g.value = s.tuple(keys), strings.Join(values, "\x00")
	g.tuple.segments++
	if class.filed[g.tuple] == nil {
		class.filed[g.tuple] = map[string][]*segment{}
	}
	class.filed[g.tuple][g.value] = append(class.filed[g.tuple][g.value], g)
	return g
}

func (s *State) dropSegment(g *segment) {
	without := func(list []*segment) []*segment {
		return slices.DeleteFunc(list, func(other *segment) bool { return other == g })
	}
	class := s.storage.classes[g.Class]
	if g.tuple == nil {
		class.others = without(class.others)
	} else {
		filed := class.filed[g.tuple]
		if filed[g.value] = without(filed[g.value]); len(filed[g.value]) == 0 {
			delete(filed, g.value)
		}
		if len(filed) == 0 {
			delete(class.filed, g.tuple)
		}
		if g.tuple.segments--; g.tuple.segments == 0 {
			delete(s.storage.tuples, tupleKey(g.tuple.keys))
		}
	}
	if len(class.filed)+len(class.others) == 0 {
		delete(s.storage.classes, g.Class)
	}
}

// namedValues returns the labels that the selector asks for and their values; false where it asks in another way.
func namedValues(selector labels.Selector) (keys, values []string, plain bool) {
	asked, _ := selector.Requirements()
	asked = slices.Clone(asked)
	slices.SortFunc(asked, func(a, b labels.Requirement) int { return strings.Compare(a.Key(), b.Key()) })
	for i := range asked {
		r := &asked[i]
		equal := []selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}
		if !slices.Contains(equal, r.Operator()) || r.Values().Len() != 1 || slices.Contains(keys, r.Key()) {
			return nil, nil, false
		}
		keys, values = append(keys, r.Key()), append(values, r.Values().UnsortedList()[0])
	}
	return keys, values, true
}

func tupleKey(keys []string) string { return strings.Join(keys, "\x00") }

func (s *State) tuple(keys []string) *tuple {
	t := s.storage.tuples[tupleKey(keys)]
	if t == nil {
		t = &tuple{keys: keys, values: map[Slot]string{}, nodes: map[string][]Slot{}}
		for slot := range Slot(s.Slots()) {
			t.place(s, slot)
		}
		s.storage.tuples[tupleKey(keys)] = t
	}
	return t
}

// place takes over what changed of a node's description.
func (t *tuple) place(s *State, slot Slot) {
	before, had := t.values[slot]
	now, has := t.valueOf(s, slot)
	if had == has && before == now {
		return
	}
	if had {
		nodes := t.nodes[before]
		i, _ := slices.BinarySearch(nodes, slot)
		if t.nodes[before] = slices.Delete(nodes, i, i+1); len(nodes) == 1 {
			delete(t.nodes, before)
		}
		delete(t.values, slot)
	}
	if has {
		i, _ := slices.BinarySearch(t.nodes[now], slot)
		t.nodes[now] = slices.Insert(t.nodes[now], i, slot)
		t.values[slot] = now
	}
}

func (t *tuple) valueOf(s *State, slot Slot) (string, bool) {
	if !s.Known(slot) {
		return "", false
	}
	var b strings.Builder
	for i, key := range t.keys {
		value, ok := s.labelOf(slot, key)
		if !ok {
			return "", false
		}
		if i > 0 {
			b.WriteByte(0)
		}
		b.WriteString(value)
	}
	return b.String(), true
}

func (s *State) placeInTuples(slot Slot) {
	for _, t := range s.storage.tuples {
		t.place(s, slot)
	}
}

// Storage reports whether a volume of this size and class can be made for the node, and how much there is in all where
// it is made: the most, where it can be made of several segments.
func (n Node) Storage(class string, size int64) (capacity int64, enough bool) {
	consider := func(g *segment) {
		if g.Largest >= size {
			capacity, enough = max(capacity, g.Capacity), true
		}
	}
	of := n.state.storage.classes[class]
	if of == nil {
		return 0, false
	}
	for t, filed := range of.filed {
		if value, ok := t.values[n.slot]; ok {
			for _, g := range filed[value] {
				consider(g)
			}
		}
	}
	for _, g := range of.others {
		if g.Nodes.Matches(nodeLabels{n.state, n.slot}) {
			consider(g)
		}
	}
	return capacity, enough
}

// nodeLabels are the labels of a node, without making a map of them.
type nodeLabels struct {
	state *State
	slot  Slot
}

func (l nodeLabels) Has(key string) bool { _, ok := l.state.labelOf(l.slot, key); return ok }

func (l nodeLabels) Get(key string) string { value, _ := l.state.labelOf(l.slot, key); return value }

func (l nodeLabels) Lookup(key string) (string, bool) { return l.state.labelOf(l.slot, key) }
