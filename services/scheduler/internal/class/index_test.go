package class

import (
	"testing"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// A class that looks at domains builds its buckets again when there are more than 256 and more than three quarters of
// them are empty.
func TestSparse(t *testing.T) {
	for name, test := range map[string]struct {
		buckets, empty int
		domains        bool
		want           bool
	}{
		"few, all empty":              {256, 256, true, false},
		"many, all empty":             {257, 257, true, true},
		"three quarters empty":        {260, 195, true, false},
		"one more than that":          {260, 196, true, true},
		"none empty":                  {1000, 0, true, false},
		"many empty, without domains": {1000, 1000, false, false},
	} {
		ix := newIndex(&judge{})
		if test.domains {
			ix.judge.domain.counts = make([]columns.Count, 1)
		}
		for i := range test.buckets {
			h := heap{}
			if i >= test.empty {
				h = heap{item{}}
			}
			ix.buckets = append(ix.buckets, h)
		}
		if got := ix.sparse(); got != test.want {
			t.Errorf("%s: sparse is %v", name, got)
		}
	}
}

// A class goes without its last Pod when a term is dropped that it carries, or one that selects it.
func TestOutdated(t *testing.T) {
	s := columns.New(1)
	kept := s.Carry("kept", []columns.TermSpec{{Purpose: "kept"}})
	dropped := s.Carry("dropped", []columns.TermSpec{{Purpose: "dropped"}})
	s.Carry("dropped", nil)
	for name, test := range map[string]struct {
		carries, selectedBy []*columns.Term
		want                bool
	}{
		"no terms":                    {nil, nil, false},
		"carried ones":                {kept, kept, false},
		"it carries a dropped one":    {dropped, kept, true},
		"a dropped one selects it":    {kept, dropped, true},
		"both":                        {dropped, dropped, true},
		"only a dropped one selects":  {nil, dropped, true},
		"only a dropped one, carried": {dropped, nil, true},
	} {
		set := NewSet()
		subject := rules.PodOf(rulestest.Pod("p"), s.Usage(rulestest.Pod("p")))
		subject.Terms, subject.SelectedBy = test.carries, test.selectedBy
		set.Leave(set.Join(&rules.Profile{Name: "p"}, subject))
		if gone := set.Len() == 0; gone != test.want {
			t.Errorf("%s: the class went: %v", name, gone)
		}
	}
}
