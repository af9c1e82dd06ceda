package layout

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// daemonFolders hold the code that runs in daemons.
var daemonFolders = regexp.MustCompile(`^(kit|services)/`)

// servers lists the lines at which a daemon makes an HTTP server in a file that does not limit connections.
func servers(name string, files *token.FileSet, file *ast.File) []int {
	if strings.HasSuffix(name, "_test.go") || !daemonFolders.MatchString(name) {
		return nil
	}
	var lines []int
	bounded := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if isSelector(n.Type, "http", "Server") {
				lines = append(lines, files.Position(n.Pos()).Line)
			}
		case *ast.CallExpr:
			bounded = bounded || isSelector(n.Fun, "connections", "Bound")
		}
		return true
	})
	if bounded {
		return nil
	}
	return lines
}
