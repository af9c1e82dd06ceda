package columns

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/selection"
)

// file is terms, filed by a label that each Pod has which they select, so that an event of a Pod looks at few. Each
// list is in the order of their IDs.
type file struct {
	byLabel map[label][]*Term  // those that ask for a value
	byName  map[string][]*Term // those that ask for a label of any value
	others  []*Term
	found   []*Term // of the last call of selecting, to be used again
}

type label struct{ key, value string }

func newFile() file { return file{byLabel: map[label][]*Term{}, byName: map[string][]*Term{}} }

// selecting returns the terms that select the Pod, in no order; the result is valid until the next call.
func (f *file) selecting(p *corev1.Pod) []*Term {
	if len(f.byLabel)+len(f.byName)+len(f.others) == 0 {
		return nil
	}
	found := f.found[:0]
	for key, value := range p.Labels {
		found = appendSelecting(found, f.byLabel[label{key, value}], p)
		found = appendSelecting(found, f.byName[key], p)
	}
	f.found = appendSelecting(found, f.others, p)
	return f.found
}

func appendSelecting(found, among []*Term, p *corev1.Pod) []*Term {
	for _, t := range among {
		if t.Selects(p) {
			found = append(found, t)
		}
	}
	return found
}

func (f *file) add(term *Term) {
	f.change(term, func(list []*Term) []*Term {
		at, _ := slices.BinarySearchFunc(list, term, byID)
		return slices.Insert(list, at, term)
	})
}

func (f *file) remove(term *Term) {
	f.change(term, func(list []*Term) []*Term {
		at, _ := slices.BinarySearchFunc(list, term, byID)
		return slices.Delete(list, at, at+1)
	})
}

func byID(a, b *Term) int { return cmp.Compare(a.ID, b.ID) }

// change changes the lists where the term belongs.
func (f *file) change(term *Term, change func([]*Term) []*Term) {
	key, values := term.label()
	switch {
	case key == "":
		f.others = change(f.others)
	case len(values) == 0:
		put(f.byName, key, change(f.byName[key]))
	}
	for _, value := range values {
		at := label{key, value}
		put(f.byLabel, at, change(f.byLabel[at]))
	}
}

func put[K comparable](lists map[K][]*Term, key K, list []*Term) {
	if len(list) == 0 {
		delete(lists, key)
		return
	}
	lists[key] = list
}

// label returns a label that each Pod has which the term selects, and its values, each once; no value for any, no key
// for none.
func (t *Term) label() (key string, values []string) {
	for _, selector := range t.Selectors {
		requirements, _ := selector.Requirements()
		for _, r := range requirements {
			switch r.Operator() {
			case selection.In, selection.Equals, selection.DoubleEquals:
				return r.Key(), slices.Compact(slices.Sorted(slices.Values(r.ValuesUnsorted())))
			case selection.Exists:
				key = r.Key()
			}
		}
	}
	return key, nil
}
