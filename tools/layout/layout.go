// Package layout checks rules that no common linter knows: the length of files, the names of packages, that the
// features of one service do not import each other, that only allowed packages force a deletion, that tests do not
// sleep, that no request can end its daemon through a goroutine and that connections cannot use up all files, that
// no number of seconds overflows, that code which keeps an informer's objects knows when they are complete, that
// the packages of resources do not depend on how they are served, that decisions do nothing but decide, and what
// each module requires.
package layout

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// Budgets in lines. A table of cases reads well at a length at which code does not.
const (
	maxLines     = 500
	maxTestLines = 1000
)

// bannedNames say nothing about what a package is for.
var bannedNames = []string{"base", "common", "helper", "helpers", "manager", "misc", "types", "util", "utils"}

// featureFolders hold packages that never import each other: each may be removed without a change to the others.
var featureFolders = regexp.MustCompile(`^services/[^/]+/internal/(controllers|collectors)/[^/]+`)

// graceFolders may name a Pod's grace period, and so force a deletion: the apiserver takes it from clients, the
// nodeagent obeys it, and one collector deletes Pods of nodes that are gone. No other package may assume that
// force is safe.
var graceFolders = regexp.MustCompile(
	`^(services/(apiserver|nodeagent)|services/podgc/internal/collectors/pods|test)/`)

// generatedLine is the mark that the go command defines for generated files.
var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Finding is one broken rule.
type Finding struct {
	Path    string
	Message string
}

func (f Finding) String() string { return f.Path + ": " + f.Message }

// Check walks a repository and returns its findings in the order of their paths, those of whole packages last.
func Check(repository fs.FS) ([]Finding, error) {
	keptResults, err := readKept(repository)
	if err != nil {
		return nil, err
	}
	checkGo := func(name string, content []byte) ([]Finding, error) { return checkFile(name, content, keptResults) }
	var findings []Finding
	err = fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		var check func(string, []byte) ([]Finding, error)
		switch {
		case strings.HasSuffix(name, ".go"):
			check = checkGo
		case path.Base(name) == "go.mod" && !strings.HasPrefix(name, "tools/pins/"):
			check = checkModule
		default:
			return nil
		}
		content, err := fs.ReadFile(repository, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		found, err := check(name, content)
		findings = append(findings, found...)
		return err
	})
	if err != nil {
		return findings, err
	}
	for _, check := range []func(fs.FS) ([]Finding, error){checkResources, checkDecisions} {
		found, err := check(repository)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

// skipped reports whether a folder has no code of the product.
func skipped(dir string) bool {
	base := path.Base(dir)
	return base == "testdata" || dir == "bin" || (len(base) > 1 && strings.HasPrefix(base, "."))
}

// lineRules are the rules for single lines; broken returns the lines of a file that break one.
var lineRules = []struct {
	broken  func(name string, files *token.FileSet, file *ast.File) []int
	message string
}{
	{sleeps, "a test sleeps: use testing/synctest, a fake clock, or wait for a condition"},
	{graces, "names a grace period: a Pod keeps its own, only podgc's collector of that name forces a deletion"},
	{goroutines, "starts a goroutine on the way of requests, whose panic would end the daemon: use package contained"},
	{overflows, "multiplies a number with a unit of time: kit/seconds does so without overflow"},
	{servers, "serves whoever connects: kit/connections bounds how many connections there are"},
	{followers, "drops what tells when a handler has every object: keep the registration, and wait for its HasSynced"},
	{dumps, "takes a list of the kernel's that may be changed meanwhile: kit/netdump reads it whole"},
}

// checkFile checks a file of Go.
func checkFile(name string, content []byte, k kept) ([]Finding, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	if generated(content) {
		return nil, nil
	}
	var found []Finding
	if lines, limit := countLines(content), limitOf(name); lines > limit {
		found = append(found, Finding{name, fmt.Sprintf("%d lines, at most %d: split it by what its parts are for",
			lines, limit)})
	}
	if slices.Contains(bannedNames, file.Name.Name) {
		found = append(found, Finding{name, fmt.Sprintf("package %s: name it after what it does", file.Name.Name)})
	}
	for _, rule := range lineRules {
		for _, line := range rule.broken(name, files, file) {
			found = append(found, Finding{fmt.Sprintf("%s:%d", name, line), rule.message})
		}
	}
	for _, line := range beyond(name, files, file, k) {
		found = append(found, Finding{fmt.Sprintf("%s:%d", name, line),
			"a test reads a file outside of its module, whose changes the go command overlooks: name its package in " +
				"UNCACHED of the Makefile, or the file in OUTSIDE"})
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return found, fmt.Errorf("reading an import of %s: %w", name, err)
		}
		if sibling := siblingImport(name, imported); sibling != "" {
			found = append(found, Finding{name, fmt.Sprintf("imports %s: features of a service never import each other",
				sibling)})
		}
	}
	return found, nil
}

// sleeps lists the lines at which a test sleeps in real time; in a bubble of testing/synctest a sleep takes none.
// Benchmarks of a whole mesh measure over a stretch of time.
func sleeps(name string, files *token.FileSet, file *ast.File) []int {
	if !strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/bench/") ||
		slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
			return spec.Path.Value == `"testing/synctest"`
		}) {
		return nil
	}
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "Sleep" {
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" {
				lines = append(lines, files.Position(n.Pos()).Line)
			}
		}
		return true
	})
	return lines
}

// graces lists the lines at which code names a grace period without permission.
func graces(name string, files *token.FileSet, file *ast.File) []int {
	if strings.HasSuffix(name, "_test.go") || graceFolders.MatchString(name) {
		return nil
	}
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && (ident.Name == "GracePeriodSeconds" || ident.Name == "NewDeleteOptions") {
			lines = append(lines, files.Position(n.Pos()).Line)
		}
		return true
	})
	return lines
}

// siblingImport returns the imported package when it belongs to another feature of the same folder.
func siblingImport(file, imported string) string {
	own := featureFolders.FindString(path.Dir(file))
	other := featureFolders.FindString(strings.TrimPrefix(imported, "keelson.dev/"))
	if own == "" || other == "" || own == other || path.Dir(own) != path.Dir(other) {
		return ""
	}
	return imported
}

func limitOf(name string) int {
	if strings.HasSuffix(name, "_test.go") {
		return maxTestLines
	}
	return maxLines
}

// generated looks for the mark above the package clause only, so that a generator may quote it.
func generated(content []byte) bool {
	head, _, _ := bytes.Cut(append([]byte("\n"), content...), []byte("\npackage "))
	return generatedLine.Match(head)
}

func countLines(content []byte) int {
	lines := 0
	for scanner := bufio.NewScanner(bytes.NewReader(content)); scanner.Scan(); {
		lines++
	}
	return lines
}

// checkModule finds errors that go.work would hide: a workspace builds even if a module requires too little or too
// much.
func checkModule(name string, content []byte) ([]Finding, error) {
	module, err := modfile.Parse(name, content, nil)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	var found []Finding
	for _, require := range module.Require {
		required := require.Mod.Path
		if required == "k8s.io/kubernetes" {
			found = append(found, Finding{name, "requires k8s.io/kubernetes: only its libraries may be used"})
		}
		if strings.HasPrefix(name, "services/") && strings.HasPrefix(required, "keelson.dev/services/") {
			found = append(found, Finding{name, fmt.Sprintf("requires %s: services share kit and proto, nothing else",
				required)})
		}
	}
	for _, replace := range module.Replace {
		ours := strings.HasPrefix(replace.Old.Path, "keelson.dev/") && replace.New.Version == ""
		another := replace.Old.Path == replace.New.Path && replace.Old.Path == held[name]
		if !ours && !another {
			found = append(found, Finding{name,
				fmt.Sprintf("replaces %s: only our own modules are replaced, by their folders", replace.Old.Path)})
		}
	}
	return found, nil
}

// held lists the modules that a go.mod may replace with another release of the same module; the go.mod says why.
var held = map[string]string{"services/apiserver/go.mod": "github.com/google/go-cmp"}
