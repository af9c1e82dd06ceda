package main

import "testing"

// A figure is the mean of what was measured, a ratio that of two means.
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
