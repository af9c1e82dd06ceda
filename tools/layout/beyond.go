package layout

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// kept lists the packages for which the go command caches no test results, and the files outside of a module whose
// changes reach cached tests through a sum.
type kept struct {
	// eachTime are the folders of the packages whose tests run each time.
	eachTime []string
	// summed are the folders and files that go, as one sum, into the environment of the tests of integration.
	summed []string
}

// integration is the folder of the tests that read the sum.
const integration = "test/integration"

// readKept reads from the Makefile what it lists. A repository without one has nothing.
func readKept(repository fs.FS) (kept, error) {
	makefile, err := fs.ReadFile(repository, "Makefile")
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, nil
	}
	if err != nil {
		return kept{}, fmt.Errorf("reading which tests run each time: %w", err)
	}
	list := func(variable string) []string {
		_, line, _ := strings.Cut("\n"+string(makefile), "\n"+variable+" := ")
		line, _, _ = strings.Cut(line, "\n")
		return strings.Fields(line)
	}
	// The tests with real daemons run under another program, those on machines and benchmarks with -count or -bench.
	never := []string{"test/e2e", "test/vm", "test/bench"}
	eachTime := slices.Concat(never, list("UNCACHED"), list("UNCACHED_ALONE"))
	return kept{eachTime: eachTime, summed: list("OUTSIDE")}, nil
}

// seen reports whether a change of the file, outside of the module, makes the tests of a folder run again.
func (k kept) seen(file, folder string) bool {
	return slices.Contains(k.eachTime, folder) ||
		folder == integration && slices.ContainsFunc(k.summed, func(root string) bool { return within(file, root) })
}

// within reports whether a file is the root or below it.
func within(file, root string) bool { return file == root || strings.HasPrefix(file, root+"/") }

// beyond lists the lines at which a test names a file outside of its module whose changes the go command does not
// notice.
func beyond(name string, files *token.FileSet, file *ast.File, k kept) []int {
	folder := path.Dir(name)
	module := moduleOf(folder)
	if !strings.HasSuffix(name, "_test.go") {
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
		if to := path.Join(folder, text); !within(to, module) && !k.seen(to, folder) {
			lines = append(lines, files.Position(n.Pos()).Line)
		}
		return true
	})
	return lines
}

// moduleOf returns the folder of the module to which a folder belongs.
func moduleOf(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	if parts[0] == "services" && len(parts) > 1 {
		return path.Join(parts[:2]...)
	}
	return parts[0]
}
