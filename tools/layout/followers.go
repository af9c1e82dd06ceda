package layout

import (
	"go/ast"
	"go/token"
	"strings"
)

// followers lists the lines at which somebody follows an informer's objects and drops what tells when all that there
// are have come. What is kept of them is not whole when the informer's own store is. A handler that only wakes somebody
// keeps nothing, and a test looks at what it has.
func followers(name string, files *token.FileSet, file *ast.File) []int {
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		assignment, ok := n.(*ast.AssignStmt)
		if !ok || len(assignment.Rhs) != 1 {
			return true
		}
		call, ok := assignment.Rhs[0].(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !isMethod(call.Fun, "AddEventHandler") || onlyWakes(call.Args[0]) {
			return true
		}
		if kept, ok := assignment.Lhs[0].(*ast.Ident); ok && kept.Name == "_" {
			lines = append(lines, files.Position(call.Pos()).Line)
		}
		return true
	})
	return lines
}

func isMethod(fun ast.Expr, name string) bool {
	selector, ok := fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == name
}

// onlyWakes says whether a handler is one that is told of a change, but not of what.
func onlyWakes(handler ast.Expr) bool {
	call, ok := handler.(*ast.CallExpr)
	return ok && isSelector(call.Fun, "follow", "Changes")
}
