// Package repeat runs tests repeatedly, in a different order each time and under load, and reports those whose
// result varies.
//
//	outcomes.go  what tests came to, over all rounds
//	run.go       building and running them
package repeat

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"keelson.dev/tools/testevents"
)

// name is a test of a package; without a test, what failed of the package itself, as a panic or the time that was up.
type name struct{ pkg, test string }

// Outcomes are what tests came to.
type Outcomes struct {
	rounds map[name]int
	// failed are the seeds of the rounds that a test did not pass.
	failed map[name][]int64
}

// NewOutcomes returns outcomes of no round.
func NewOutcomes() *Outcomes { return &Outcomes{rounds: map[name]int{}, failed: map[name][]int64{}} }

// Add reads what `go tool test2json` printed of one package in the round of a seed.
func (o *Outcomes) Add(seed int64, events io.Reader) error {
	blamed := false
	for end, err := range testevents.Ends(events) {
		if err != nil {
			return err
		}
		about := name{end.Package, end.Test}
		// A package fails with its tests: it is named only if none is to blame.
		if !end.Passed && (end.Test != "" || !blamed) {
			o.failed[about] = append(o.failed[about], seed)
			blamed = true
		}
		o.rounds[about]++
	}
	return nil
}

// Failed reports whether any test did not pass every time.
func (o *Outcomes) Failed() bool { return len(o.failed) > 0 }

// Print writes one line for each test that did not pass every time, the least reliable first.
func (o *Outcomes) Print(to io.Writer) error {
	names := slices.SortedFunc(maps.Keys(o.failed), func(a, b name) int {
		return cmp.Or(cmp.Compare(len(o.failed[b]), len(o.failed[a])), cmp.Compare(a.pkg, b.pkg),
			cmp.Compare(a.test, b.test))
	})
	for _, n := range names {
		seeds := strings.Trim(fmt.Sprint(o.failed[n]), "[]")
		if _, err := fmt.Fprintf(to, "%3d of %d  %s %s  seeds %s\n", len(o.failed[n]), o.rounds[n],
			strings.TrimPrefix(n.pkg, "keelson.dev/"), n.test, seeds); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
