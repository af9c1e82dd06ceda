// Package failures reports the failed tests of a run in few lines.
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
	// most is how many failures are told of: with their words and what make says, in 40 lines.
	most = 12
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

// Print names what failed, and what it said first. Of a test and its parts it names the parts, and where too much has
// failed, something of each module first.
func (f *Failures) Print(to io.Writer) error {
	all := slices.SortedFunc(maps.Keys(f.failed), compare)
	names := slices.DeleteFunc(slices.Clone(all), func(n name) bool {
		return slices.ContainsFunc(all, func(part name) bool { return part.within(n) })
	})
	for _, n := range chosen(names) {
		lines := strings.Join(append([]string{strings.TrimPrefix(n.pkg, root) + " " + n.test}, f.said[n]...), "\n    ")
		if _, err := fmt.Fprintln(to, lines); err != nil {
			return err
		}
	}
	if len(names) <= most {
		return nil
	}
	_, err := fmt.Fprintf(to, "and %d more\n", len(names)-most)
	return err
}

func compare(a, b name) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test)) }

// chosen are the failures that are told of, in order: modules take turns, and so do the packages of a module.
func chosen(names []name) []name {
	ofPackage, ofModule := map[string]int{}, map[string]int{}
	turn := map[name]int{}
	inPackage := map[name]int{}
	for _, n := range names {
		inPackage[n] = ofPackage[n.pkg]
		ofPackage[n.pkg]++
	}
	byPackage := slices.SortedStableFunc(slices.Values(names), func(a, b name) int {
		return cmp.Compare(inPackage[a], inPackage[b])
	})
	for _, n := range byPackage {
		turn[n] = ofModule[module(n.pkg)]
		ofModule[module(n.pkg)]++
	}
	byTurn := slices.SortedStableFunc(slices.Values(byPackage), func(a, b name) int {
		return cmp.Compare(turn[a], turn[b])
	})
	return slices.SortedFunc(slices.Values(byTurn[:min(most, len(byTurn))]), compare)
}

// root is what the paths of all modules begin with.
const root = "keelson.dev/"

// module is that of a package, from its path: of some folders each folder is one.
func module(pkg string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(pkg, root), "/")
	second, _, _ := strings.Cut(rest, "/")
	if first == "services" || first+"/"+second == "test/images" || first+"/"+second == "tools/pins" {
		return first + "/" + second
	}
	return first
}
