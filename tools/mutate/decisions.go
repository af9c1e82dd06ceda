// Package mutate breaks decisions in small ways, one at a time, and counts how often the tests beside them notice. The
// breaking is done by gremlins; this package says where, and sums up the outcome.
package mutate

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"keelson.dev/tools/decisions"
)

// Package is a folder with decisions.
type Package struct {
	// Dir is relative to the module.
	Dir string
	// Decisions are the files that are broken, Others the files of the folder and of those below that are not.
	Decisions, Others []string
}

// Decisions returns the packages of a module that hold decisions.
func Decisions(repository fs.FS, module string) ([]Package, error) {
	var files []string
	err := fs.WalkDir(repository, module, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path.Base(name) == "testdata":
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for decisions: %w", err)
	}
	var packages []Package
	for _, dir := range folders(files) {
		found, err := decisions.In(repository, dir)
		if err != nil {
			return nil, err
		}
		if len(found.Files) == 0 {
			continue
		}
		p := Package{Dir: relative(module, dir), Decisions: found.Files}
		for _, name := range files {
			if file := relative(dir, name); file != name && !slices.Contains(found.Files, file) {
				p.Others = append(p.Others, file)
			}
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// folders returns the folders of the files, sorted.
func folders(files []string) []string {
	var out []string
	for _, name := range files {
		out = append(out, path.Dir(name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func relative(dir, name string) string { return strings.TrimPrefix(name, dir+"/") }
