// Package testevents reads what `go test -json` and `go tool test2json` print.
package testevents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// End is how a package as a whole ended, or one of its tests that is not part of another.
type End struct {
	Package string
	// Test is empty for a package.
	Test   string
	Passed bool
	Took   time.Duration
}

// Ends returns what passed and what failed, in the order in which it ended: what was skipped is not among it, and what
// ran twice is there twice. It ends with an error at what is no event.
func Ends(from io.Reader) iter.Seq2[End, error] {
	return func(yield func(End, error) bool) {
		for events := json.NewDecoder(from); ; {
			var e struct {
				Action, Package, Test string
				Elapsed               float64 // seconds
			}
			err := events.Decode(&e)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(End{}, fmt.Errorf("reading the events of tests: %w", err))
				return
			}
			passed := e.Action == "pass"
			if !passed && e.Action != "fail" || e.Package == "" || strings.Contains(e.Test, "/") {
				continue
			}
			took := time.Duration(e.Elapsed * float64(time.Second))
			if !yield(End{Package: e.Package, Test: e.Test, Passed: passed, Took: took}, nil) {
				return
			}
		}
	}
}
