// Package decisions finds the code of the repository that decides: pure functions of (spec, observed, now), without
// I/O, clock or logs. Files named decide*.go decide, and all files of packages whose doc comment has the Marker.
package decisions

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Marker is a line of its own in the doc comment of a package that only decides. Go's tools do not show it.
const Marker = "//keelson:decision"

// Package is a folder of Go code.
type Package struct {
	// Marked is whether the whole package decides.
	Marked bool
	// Files are the names of those of its files that decide, Others of those that do not. Neither has tests.
	Files, Others []string
	// Tests are the names of its test files.
	Tests []string
}

// In returns the package in a folder; the zero Package if the folder has no Go files.
func In(repository fs.FS, folder string) (Package, error) {
	entries, err := fs.ReadDir(repository, folder)
	if err != nil {
		return Package{}, fmt.Errorf("looking for decisions: %w", err)
	}
	var p Package
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			continue
		case strings.HasSuffix(name, "_test.go"):
			p.Tests = append(p.Tests, name)
			continue
		case strings.HasPrefix(name, "decide"):
			p.Files = append(p.Files, name)
		default:
			p.Others = append(p.Others, name)
		}
		content, err := fs.ReadFile(repository, path.Join(folder, name))
		if err != nil {
			return Package{}, fmt.Errorf("looking for decisions: %w", err)
		}
		p.Marked = p.Marked || marked(content)
	}
	if p.Marked {
		p.Files, p.Others = append(p.Files, p.Others...), nil
	}
	return p, nil
}

// marked reports whether the marker stands above the package clause.
func marked(content []byte) bool {
	head, _, _ := bytes.Cut(append([]byte("\n"), content...), []byte("\npackage "))
	return bytes.Contains(append(head, '\n'), []byte("\n"+Marker+"\n"))
}
