// Package testtimes tells from what `go test -json` prints which packages and tests took longest.
package testtimes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Time is how long a package took as a whole, or one test that is not part of another.
type Time struct {
	Package string
	// Test is empty for a package.
	Test string
	Took time.Duration
}

// event is what this package reads of an event of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
}

// Read returns the times of packages and tests, each in the order in which they ended. What ran twice has two.
func Read(from io.Reader) (packages, tests []Time, err error) {
	events := json.NewDecoder(from)
	for {
		var e event
		switch err := events.Decode(&e); {
		case errors.Is(err, io.EOF):
			return packages, tests, nil
		case err != nil:
			return nil, nil, fmt.Errorf("reading the events of tests: %w", err)
		}
		if e.Action != "pass" && e.Action != "fail" || e.Package == "" || strings.Contains(e.Test, "/") {
			continue
		}
		took := Time{Package: e.Package, Test: e.Test, Took: time.Duration(e.Elapsed * float64(time.Second))}
		if e.Test == "" {
			packages = append(packages, took)
		} else {
			tests = append(tests, took)
		}
	}
}

// Slowest returns the count longest times, the longest first.
func Slowest(times []Time, count int) []Time {
	sorted := slices.SortedStableFunc(slices.Values(times), func(a, b Time) int { return cmp.Compare(b.Took, a.Took) })
	return sorted[:min(count, len(sorted))]
}

// Print writes one line for each time.
func Print(to io.Writer, times []Time) error {
	for _, t := range times {
		name := strings.TrimPrefix(t.Package, "keelson.dev/")
		if t.Test != "" {
			name += " " + t.Test
		}
		if _, err := fmt.Fprintf(to, "%7.1f s  %s\n", t.Took.Seconds(), name); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
