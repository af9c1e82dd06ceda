package layout

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// uncachedLine is where the Makefile names the packages whose tests run each time, whatever the go command has kept.
var uncachedLine = regexp.MustCompile(`(?m)^UNCACHED := (.*)$`)

// uncached reads which packages' tests run each time, by their folders. A repository without a Makefile has none.
func uncached(repository fs.FS) ([]string, error) {
	makefile, err := fs.ReadFile(repository, "Makefile")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which tests run each time: %w", err)
	}
	line := uncachedLine.FindSubmatch(makefile)
	if line == nil {
		return nil, nil
	}
	return strings.Fields(string(line[1])), nil
}

// beyond lists the lines at which a test names a file outside of its module, of whose changes the go command takes no
// notice, although its package is not among those that run each time. All of module test/ do.
func beyond(name string, files *token.FileSet, file *ast.File, eachTime []string) []int {
	folder := path.Dir(name)
	module := moduleOf(folder)
	if !strings.HasSuffix(name, "_test.go") || module == "test" || slices.Contains(eachTime, folder) {
		return nil
	}
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil || !strings.HasPrefix(text, "../") {
			return true
		}
		if to := path.Join(folder, text); to != module && !strings.HasPrefix(to, module+"/") {
			lines = append(lines, files.Position(n.Pos()).Line)
		}
		return true
	})
	return lines
}

// moduleOf is the folder of the module that a folder belongs to.
func moduleOf(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	if parts[0] == "services" && len(parts) > 1 {
		return path.Join(parts[:2]...)
	}
	return parts[0]
}
