// Package failures tells what failed of tests that ran, in few lines.
package failures

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"keelson.dev/tools/testevents"
)

const (
	// most is how many failures are told of.
	most = 10
	// words is how many lines of what a test said are told.
	words = 2
)

// name is a test, a part of one, or without a test a package as a whole.
type name struct{ pkg, test string }

// within reports whether the test is a part of the other, or of its package.
func (n name) within(other name) bool {
	return n.pkg == other.pkg && n != other && (other.test == "" || strings.HasPrefix(n.test, other.test+"/"))
}

// Failures are what did not pass when it ran last.
type Failures struct {
	failed map[name]bool
	said   map[name][]string
}

// New returns the Failures of nothing.
func New() *Failures { return &Failures{failed: map[name]bool{}, said: map[name][]string{}} }

// Add reads the events of `go test -json`.
func (f *Failures) Add(events io.Reader) error {
	for e, err := range testevents.All(events) {
		if err != nil {
			return err
		}
		f.note(e.Action, name{cmp.Or(e.Package, e.ImportPath), e.Test}, e.Output)
	}
	return nil
}

func (f *Failures) note(action string, n name, output string) {
	switch action {
	case "run", "start":
		delete(f.said, n)
	case "pass", "skip":
		delete(f.failed, n)
	case "fail", "build-fail":
		f.failed[n] = true
	case "output", "build-output":
		line := strings.TrimSpace(output)
		if len(f.said[n]) < words && line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") &&
			!strings.HasPrefix(line, "# ") {
			f.said[n] = append(f.said[n], line)
		}
	}
}

// Print names what failed, and what it said first. Of a test and its parts it names the parts.
func (f *Failures) Print(to io.Writer) error {
	all := slices.SortedFunc(maps.Keys(f.failed), func(a, b name) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
	})
	names := slices.DeleteFunc(slices.Clone(all), func(n name) bool {
		return slices.ContainsFunc(all, func(part name) bool { return part.within(n) })
	})
	for i, n := range names {
		if i == most {
			_, err := fmt.Fprintf(to, "and %d more\n", len(names)-most)
			return err
		}
		lines := strings.Join(append([]string{strings.TrimPrefix(n.pkg, "keelson.dev/") + " " + n.test}, f.said[n]...),
			"\n    ")
		if _, err := fmt.Fprintln(to, lines); err != nil {
			return err
		}
	}
	return nil
}
