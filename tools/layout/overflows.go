package layout

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// secondsFolders may convert numbers of seconds to durations, or have no number that comes from the API or a flag.
var secondsFolders = regexp.MustCompile(`^(kit/seconds|test|tools)/`)

// overflows lists the lines at which code multiplies a number from outside with a unit of time: numbers of the API
// have 64 bits, and a duration holds at most 292 years.
func overflows(name string, files *token.FileSet, file *ast.File) []int {
	if strings.HasSuffix(name, "_test.go") || secondsFolders.MatchString(name) {
		return nil
	}
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		product, ok := n.(*ast.BinaryExpr)
		if ok && product.Op == token.MUL && (isUnit(product.X) && isConverted(product.Y) ||
			isUnit(product.Y) && isConverted(product.X)) {
			lines = append(lines, files.Position(n.Pos()).Line)
		}
		return true
	})
	return lines
}

func isUnit(e ast.Expr) bool { return isOfTime(e, "Second", "Minute", "Hour") }

// isConverted reports whether an expression converts a number other than a literal to a duration.
func isConverted(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return isConverted(e.X)
	case *ast.UnaryExpr:
		return isConverted(e.X)
	case *ast.CallExpr:
		if len(e.Args) != 1 || !isOfTime(e.Fun, "Duration") {
			return false
		}
		_, written := e.Args[0].(*ast.BasicLit)
		return !written
	}
	return false
}

// isOfTime reports whether an expression is one of these names of package time.
func isOfTime(e ast.Expr, names ...string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "time" && slices.Contains(names, selector.Sel.Name)
}
