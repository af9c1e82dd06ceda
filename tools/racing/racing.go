// Package racing finds the packages that can have a data race: those whose code or tests do more than one thing at
// once. The others are tested without the race detector, which makes tests several times as slow.
package racing

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
)

// concurrent are packages that sequential code does not need, and packages that call back from their own
// goroutines. Each stands for the packages below it too, except those in single.
var concurrent = []string{
	"sync", "testing/synctest", "net", "os/exec", "os/signal",
	"golang.org/x/sync", "google.golang.org/grpc",
	"k8s.io/client-go", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime",
	"keelson.dev/kit/contained", "keelson.dev/kit/lanes", "keelson.dev/kit/batch", "keelson.dev/kit/follow",
}

// single are packages below concurrent ones that start nothing.
var single = []string{"net/netip", "net/url", "net/textproto"}

// starters are methods and functions that call their argument in another goroutine: those of wait groups, error
// groups, timers and tests.
var starters = []string{"Go", "TryGo", "AfterFunc", "Parallel", "RunParallel"}

// Starts reports whether a file may start a goroutine, or guards data against another one.
func Starts(file *ast.File) bool {
	if slices.ContainsFunc(file.Imports, needed) {
		return true
	}
	starts := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt:
			starts = true
		case *ast.CallExpr:
			selector, ok := n.Fun.(*ast.SelectorExpr)
			starts = starts || ok && slices.Contains(starters, selector.Sel.Name)
		}
		return !starts
	})
	return starts
}

func needed(spec *ast.ImportSpec) bool {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return true
	}
	if slices.Contains(single, imported) {
		return false
	}
	for ; imported != "."; imported = path.Dir(imported) {
		if slices.Contains(concurrent, imported) {
			return true
		}
	}
	return false
}

// Any reports whether one of the files may start a goroutine.
func Any(files []string) (bool, error) {
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, fmt.Errorf("parsing: %w", err)
		}
		if Starts(file) {
			return true, nil
		}
	}
	return false, nil
}
