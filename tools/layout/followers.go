package layout

import (
	"go/ast"
	"go/token"
	"strings"
)

// followers lists the lines at which code adds an event handler to an informer and drops the registration, which
// reports when the handler has received all initial objects. The data that a handler keeps may still be incomplete
// when the informer's own store is complete. A handler that only wakes a worker keeps nothing, and a test checks
// the data that it has.
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

// onlyWakes reports whether a handler receives changes without the objects.
func onlyWakes(handler ast.Expr) bool {
	call, ok := handler.(*ast.CallExpr)
	return ok && isSelector(call.Fun, "follow", "Changes")
}
