// Package mutate breaks decisions in small ways, one at a time, and counts how often the tests beside them notice. The
// breaking is done by gremlins; this package says where, by the list that the linter goes by, and sums up the outcome.
package mutate

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Package is a folder with decisions.
type Package struct {
	// Dir is relative to the module.
	Dir string
	// Decisions are the files that are broken, Others the files of the folder and of those below that are not.
	Decisions, Others []string
}

// linting is the part of .golangci.yml that says where decisions are.
type linting struct {
	Linters struct {
		Settings struct {
			Depguard struct {
				Rules struct {
					Decisions struct{ Files []string }
				}
			}
		}
	}
}

// Decisions returns the packages of a module that hold decisions, by the list that the linter goes by.
func Decisions(repository fs.FS, module string) ([]Package, error) {
	patterns, err := patterns(repository)
	if err != nil {
		return nil, err
	}
	var files []string
	err = fs.WalkDir(repository, module, func(name string, entry fs.DirEntry, err error) error {
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
	decides := func(name string) bool {
		return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) })
	}
	var packages []Package
	for _, dir := range folders(files) {
		p := Package{Dir: relative(module, dir)}
		for _, name := range files {
			switch below := strings.HasPrefix(name, dir+"/"); {
			case path.Dir(name) == dir && decides(name):
				p.Decisions = append(p.Decisions, relative(dir, name))
			case below:
				p.Others = append(p.Others, relative(dir, name))
			}
		}
		if len(p.Decisions) > 0 {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// patterns reads the list.
func patterns(repository fs.FS) ([]*regexp.Regexp, error) {
	content, err := fs.ReadFile(repository, ".golangci.yml")
	if err != nil {
		return nil, fmt.Errorf("reading the list of decisions: %w", err)
	}
	var config linting
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("reading .golangci.yml: %w", err)
	}
	var out []*regexp.Regexp
	for _, glob := range config.Linters.Settings.Depguard.Rules.Decisions.Files {
		if strings.HasPrefix(glob, "!") {
			continue // tests, which decide nothing
		}
		out = append(out, expression(glob))
	}
	if len(out) == 0 {
		return nil, errors.New(".golangci.yml: linters.settings.depguard.rules.decisions.files lists nothing")
	}
	return out, nil
}

// expression turns a glob of the linter into a regular expression.
func expression(glob string) *regexp.Regexp {
	text := strings.NewReplacer(
		`\.`, `\.`, `\*\*/`, `(.*/)?`, `\*`, `[^/]*`, `\{`, `(`, `\}`, `)`, `,`, `|`,
	).Replace(regexp.QuoteMeta(glob))
	return regexp.MustCompile("^" + text + "$")
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
