package columns

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// layout is which domain of a topology key each node is in. All counts over the same domains have one.
type layout struct {
	state       *State
	key         string
	topologyKey string
	scope       *Scope
	byNode      bool // each node with the label is a domain of its own

	numbers map[string]int32 // by value
	list    []domain         // by number, from 1
	free    []int32
	where   []int32 // by slot: the number of the domain, negative where the node is out of scope, 0 for none
	known   int     // domains with a node in scope
	readers []*Domains
}

type domain struct {
	value string
	nodes int32 // that have the value
	own   int32 // of these, in scope
}

// layout returns the layout of the count, which the table reads until drop.
func (s *State) layout(c Count, reader *Domains) *layout {
	key := c.layout()
	l := s.layouts[key]
	if l == nil {
		l = &layout{state: s, key: key, topologyKey: c.Term.TopologyKey, scope: c.Scope, byNode: c.ByNode,
			numbers: map[string]int32{}, list: make([]domain, 1)}
		for slot := range Slot(len(s.names)) {
			l.place(slot)
		}
		s.layouts[key] = l
	}
	l.readers = append(l.readers, reader)
	return l
}

func (l *layout) drop(reader *Domains) {
	l.readers = slices.DeleteFunc(l.readers, func(other *Domains) bool { return other == reader })
	if len(l.readers) == 0 {
		delete(l.state.layouts, l.key)
	}
}

// byHost reports whether few nodes share a domain, mostly none.
func (l *layout) byHost() bool { return l.byNode || l.topologyKey == corev1.LabelHostname }

// number returns the number of the node's domain, in scope or not.
func (l *layout) number(slot Slot) int32 {
	if int(slot) >= len(l.where) {
		return 0
	}
	return max(l.where[slot], -l.where[slot])
}

// inScope reports whether the Pods on the node count.
func (l *layout) inScope(slot Slot) bool { return int(slot) < len(l.where) && l.where[slot] > 0 }

// value returns the domain that the node says it is in.
func (l *layout) value(slot Slot) (string, bool) {
	value, exists := l.state.labelOf(slot, l.topologyKey)
	if exists && l.byNode {
		return l.state.names[slot], true
	}
	return value, exists
}

// place takes over what changed of a node's description.
func (l *layout) place(slot Slot) {
	for len(l.where) <= int(slot) {
		l.where = append(l.where, 0)
	}
	value, exists := l.value(slot)
	inScope := exists && (l.scope == nil || l.scope.Has(l.state.View(slot)))
	before := l.where[slot]
	if exists == (before != 0) && inScope == (before > 0) && (!exists || l.list[l.number(slot)].value == value) {
		return
	}
	for _, d := range l.readers {
		d.version++
	}
	l.withdraw(slot)
	if !exists {
		return
	}
	number := l.numbers[value]
	if number == 0 {
		number = l.open(value)
	}
	l.list[number].nodes++
	if l.where[slot] = -number; inScope {
		l.where[slot] = number
		l.join(number, 1)
		for _, d := range l.readers {
			d.shift(number, d.onNode(slot))
		}
	}
}

// withdraw takes a node out of its domain.
func (l *layout) withdraw(slot Slot) {
	number := l.number(slot)
	if number == 0 {
		return
	}
	if l.where[slot] > 0 {
		for _, d := range l.readers {
			d.shift(number, -d.onNode(slot))
		}
		l.join(number, -1)
	}
	l.where[slot] = 0
	at := &l.list[number]
	if at.nodes--; at.nodes == 0 {
		delete(l.numbers, at.value)
		at.value = ""
		l.free = append(l.free, number)
	}
}

func (l *layout) open(value string) int32 {
	var number int32
	if n := len(l.free); n > 0 {
		number, l.free = l.free[n-1], l.free[:n-1]
	} else {
		number = int32(len(l.list))
		l.list = append(l.list, domain{})
		for _, d := range l.readers {
			d.pods = append(d.pods, 0)
		}
	}
	l.list[number].value, l.numbers[value] = value, number
	return number
}

// join adds a node in scope to a domain, or takes one away. Its Pods are not counted then.
func (l *layout) join(number, by int32) {
	at := &l.list[number]
	before := at.own
	at.own += by
	switch {
	case before == 0:
		l.known++
	case at.own == 0:
		l.known--
	default:
		return
	}
	for _, d := range l.readers {
		d.level(d.pods[number], by)
	}
}
