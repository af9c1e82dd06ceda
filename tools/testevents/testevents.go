// Package testevents reads what `go test -json` and `go tool test2json` print.
package testevents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"
)

// Event is one line of what is printed.
type Event struct {
	Action, Package, Test, Output string
	// ImportPath is what is built, in place of Package.
	ImportPath string
	Elapsed    float64 // seconds
}

// All returns the events in their order. It ends with an error at what is none.
func All(from io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for events := json.NewDecoder(from); ; {
			var e Event
			err := events.Decode(&e)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("reading the events of tests: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Files reads these files in order with read. The error names the file.
func Files(names []string, read func(io.Reader) error) error {
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = read(file)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// End is how a package as a whole ended, or one of its tests that is not part of another.
type End struct {
	Package string
	// Test is empty for a package.
	Test   string
	Passed bool
	Took   time.Duration
}

// Ends returns the passed and failed tests and packages in the order in which they ended: skipped ones are left
// out, and one that ran twice appears twice. It stops with an error at a line that is no event.
func Ends(from io.Reader) iter.Seq2[End, error] {
	return func(yield func(End, error) bool) {
		for e, err := range All(from) {
			if err != nil {
				yield(End{}, err)
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
