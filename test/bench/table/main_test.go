package main

import (
	"strings"
	"testing"
)

// A figure is the mean of the measurements; a ratio is the quotient of two means.
func TestFigures(t *testing.T) {
	f := figures{"A/n=1 us/pod": {2, 4}, "A/n=9 us/pod": {9}, "B ends": {0}}
	for key, want := range map[string]struct {
		figure float64
		known  bool
	}{
		"A/n=1 us/pod":                {3, true},
		"A/n=9 us/pod / A/n=1 us/pod": {3, true},
		"A/n=9 us/pod / A/n=2 us/pod": {0, false},
		"A/n=2 us/pod / A/n=1 us/pod": {0, false},
		"A/n=9 us/pod / B ends":       {0, false},
		"B ends":                      {0, true},
		"C":                           {0, false},
	} {
		if figure, known := f.of(key); known != want.known || known && figure != want.figure {
			t.Errorf("%q is %v, %v, want %v, %v", key, figure, known, want.figure, want.known)
		}
	}
}

// No figure stands twice, and beside all that a Pod costs stands what the apiserver and the scheduler have of it, and
// how many watchers were too slow.
func TestRows(t *testing.T) {
	keys := map[string]bool{}
	for _, r := range rows {
		if keys[r.key] {
			t.Errorf("%q has two rows", r.key)
		}
		keys[r.key] = true
	}
	for key := range keys {
		benchmark, is := strings.CutSuffix(key, " all-cpu-ms/pod")
		if !is {
			continue
		}
		for _, unit := range []string{"apiserver-cpu-ms/pod", "scheduler-cpu-ms/pod", "terminated-watches"} {
			if !keys[benchmark+" "+unit] {
				t.Errorf("%s has no row of %s", benchmark, unit)
			}
		}
	}
}
