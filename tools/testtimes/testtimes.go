// Package testtimes finds the slowest packages and tests in the output of `go test -json`.
package testtimes

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"keelson.dev/tools/testevents"
)

// Read returns how packages and tests ended, each in the order in which they did. What ran twice is there twice.
func Read(from io.Reader) (packages, tests []testevents.End, err error) {
	for end, err := range testevents.Ends(from) {
		switch {
		case err != nil:
			return nil, nil, err
		case end.Test == "":
			packages = append(packages, end)
		default:
			tests = append(tests, end)
		}
	}
	return packages, tests, nil
}

// Slowest returns the count that took longest, the longest first.
func Slowest(ends []testevents.End, count int) []testevents.End {
	sorted := slices.SortedStableFunc(slices.Values(ends), func(a, b testevents.End) int {
		return cmp.Compare(b.Took, a.Took)
	})
	return sorted[:min(count, len(sorted))]
}

// Print writes one line for each.
func Print(to io.Writer, ends []testevents.End) error {
	for _, end := range ends {
		name := strings.TrimPrefix(end.Package, "keelson.dev/")
		if end.Test != "" {
			name += " " + end.Test
		}
		if _, err := fmt.Fprintf(to, "%7.1f s  %s\n", end.Took.Seconds(), name); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
