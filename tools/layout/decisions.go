package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"keelson.dev/tools/decisions"
)

// untestedLines is how long a package that only decides may be without a test file.
const untestedLines = 120

// effects are the packages that decisions do not import, with those below them, and why.
var effects = []struct{ path, why string }{
	{"context", "a decision does no I/O"},
	{"os", "a decision does no I/O"},
	{"net", "a decision does no I/O (net/netip and net/url are values)"},
	{"math/rand", "a decision takes its seed from the input"},
	{"crypto/rand", "a decision takes its seed from the input"},
	{"github.com/google/uuid", "a decision takes names and IDs from the input"},
	{"k8s.io/client-go", "a decision has no client"},
	{"sigs.k8s.io/controller-runtime", "a decision has no client"},
	{"google.golang.org/grpc", "a decision has no client"},
	{"go.uber.org/zap", "a decision logs nothing: put the reason into the plan"},
	{"k8s.io/klog", "a decision logs nothing: put the reason into the plan"},
	{"log", "a decision logs nothing: put the reason into the plan"},
	{"k8s.io/utils/clock", "a decision has no clock: take Now from the input"},
}

// values are packages below effects that only hold values.
var values = []string{"net/netip", "net/url"}

// clocks are the functions that read a clock or wait, by the packages that have them.
var clocks = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer",
		"NewTicker"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

// checkDecisions finds decisions that do something or read a clock, and packages of decisions without tests.
func checkDecisions(repository fs.FS) ([]Finding, error) {
	var findings []Finding
	err := fs.WalkDir(repository, ".", func(folder string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case skipped(folder):
			return fs.SkipDir
		}
		found, err := checkPackage(repository, folder)
		findings = append(findings, found...)
		return err
	})
	return findings, err
}

// checkPackage checks the decisions in a folder.
func checkPackage(repository fs.FS, folder string) (findings []Finding, err error) {
	p, err := decisions.In(repository, folder)
	if err != nil {
		return nil, err
	}
	lines := 0
	for _, file := range p.Files {
		name := path.Join(folder, file)
		content, err := fs.ReadFile(repository, name)
		if err != nil {
			return findings, fmt.Errorf("reading %s: %w", name, err)
		}
		lines += countLines(content)
		found, err := checkDecision(name, content)
		if err != nil {
			return findings, err
		}
		findings = append(findings, found...)
	}
	if p.Marked && len(p.Tests) == 0 && lines > untestedLines {
		findings = append(findings, Finding{folder,
			fmt.Sprintf("%d lines of decisions and no test beside them, at most %d", lines, untestedLines)})
	}
	return findings, nil
}

// checkDecision finds what a file imports or calls and a decision must not.
func checkDecision(name string, content []byte) ([]Finding, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	var findings []Finding
	clockOf := map[string][]string{} // by the name that the file has for the package
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return findings, fmt.Errorf("reading an import of %s: %w", name, err)
		}
		if why := effectOf(imported); why != "" {
			findings = append(findings, Finding{name, fmt.Sprintf("imports %s: %s", imported, why)})
		}
		if functions, has := clocks[imported]; has {
			clockOf[nameOf(spec, imported)] = functions
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(clockOf[pkg.Name], selector.Sel.Name) {
			findings = append(findings, Finding{fmt.Sprintf("%s:%d", name, files.Position(n.Pos()).Line),
				fmt.Sprintf("uses %s.%s: a decision has no clock: take Now from the input",
					pkg.Name, selector.Sel.Name)})
		}
		return true
	})
	return findings, nil
}

// effectOf returns why a decision must not import a package; "" if it may.
func effectOf(imported string) string {
	if slices.Contains(values, imported) {
		return ""
	}
	for _, effect := range effects {
		if imported == effect.path || strings.HasPrefix(imported, effect.path+"/") {
			return effect.why
		}
	}
	return ""
}

// nameOf returns the name by which a file refers to an imported package.
func nameOf(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(imported)
}
