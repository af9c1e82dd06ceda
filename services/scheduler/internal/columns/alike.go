package columns

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// alike are the Pods that take room of one namespace and equal labels, all or none of them being deleted: a term
// selects all of them or none.
type alike struct {
	key       string
	namespace string
	labels    map[string]string
	leaving   bool // they are being deleted
	on        map[Slot]int32
	pods      int
}

// selections finds the Pods that a term selects without a look at the others.
type selections struct {
	byKey   map[string]*alike // nil until the first query
	byLabel map[label]map[*alike]bool
	buffer  []byte
	names   []string
}

// count adds (by 1) or takes back (by -1) a Pod on a node.
func (s *selections) count(slot Slot, p *corev1.Pod, by int) {
	if s.byKey == nil {
		return
	}
	key := s.key(p)
	a := s.byKey[string(key)]
	if a == nil {
		a = &alike{key: string(key), namespace: p.Namespace, labels: p.Labels, leaving: p.DeletionTimestamp != nil,
			on: map[Slot]int32{}}
		s.byKey[a.key] = a
		for name, value := range p.Labels {
			at := label{name, value}
			if s.byLabel[at] == nil {
				s.byLabel[at] = map[*alike]bool{}
			}
			s.byLabel[at][a] = true
		}
	}
	a.pods += by
	bump(a.on, slot, int32(by))
	if a.pods > 0 {
		return
	}
	delete(s.byKey, a.key)
	for name, value := range p.Labels {
		at := label{name, value}
		if delete(s.byLabel[at], a); len(s.byLabel[at]) == 0 {
			delete(s.byLabel, at)
		}
	}
}

// key is equal for Pods that are alike. It is valid until the next call.
func (s *selections) key(p *corev1.Pod) []byte {
	s.names = slices.AppendSeq(s.names[:0], maps.Keys(p.Labels))
	slices.Sort(s.names)
	b := strconv.AppendBool(s.buffer[:0], p.DeletionTimestamp != nil)
	b = appendText(b, p.Namespace)
	for _, name := range s.names {
		b = appendText(appendText(b, name), p.Labels[name])
	}
	s.buffer = b
	return b
}

// appendText appends a text that its length sets apart from what follows.
func appendText(b []byte, text string) []byte {
	b = strconv.AppendInt(b, int64(len(text)), 10)
	return append(append(b, ':'), text...)
}

// among returns Pods alike, at least those that the term selects: a term that asks for values of a label looks at
// those alone that have one of them.
func (s *selections) among(t *Term) iter.Seq[*alike] {
	name, values := t.label()
	if name == "" || len(values) == 0 {
		return maps.Values(s.byKey)
	}
	return func(yield func(*alike) bool) {
		for _, value := range values {
			for a := range s.byLabel[label{name, value}] {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// selectedByNode returns how many Pods the term selects on each node, and counts them at the first call. The very first
// call looks at each Pod; without a call, nothing is kept.
func (s *State) selectedByNode(t *Term) map[Slot]int32 {
	if t.selected != nil {
		return t.selected
	}
	if s.selections.byKey == nil {
		s.selections.byKey, s.selections.byLabel = map[string]*alike{}, map[label]map[*alike]bool{}
		for _, at := range s.pods {
			s.selections.count(at.slot, at.pod, 1)
		}
	}
	t.selected = map[Slot]int32{}
	s.terms.count(t)
	for a := range s.selections.among(t) {
		if !t.selects(a.namespace, a.labels, a.leaving) {
			continue
		}
		for slot, pods := range a.on {
			t.selected[slot] += pods
		}
	}
	return t.selected
}
