package layout

import (
	"go/ast"
	"go/token"
	"strings"
)

// dumps lists the lines that call a list function of package netlink directly: if entries change meanwhile, the
// list may lack entries or have them twice. Code must pass list functions to kit/netdump, which may call them
// again. Tests may list directly what does not change.
func dumps(name string, files *token.FileSet, file *ast.File) []int {
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if isSelector(call.Fun, "netdump", "Whole") || isWhole(call.Fun) {
			return false
		}
		if of, ok := call.Fun.(*ast.SelectorExpr); ok && isName(of.X, "netlink") &&
			strings.Contains(of.Sel.Name, "List") {
			lines = append(lines, files.Position(n.Pos()).Line)
		}
		return true
	})
	return lines
}

func isSelector(e ast.Expr, of, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	return ok && isName(selector.X, of) && selector.Sel.Name == name
}

// isWhole reports whether a function is nettest's, which fails a test.
func isWhole(e ast.Expr) bool { return isName(e, "whole") }

func isName(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}
