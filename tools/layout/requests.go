package layout

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// requestFolders handle requests: the whole apiserver, and the serving packages of the other daemons.
var requestFolders = regexp.MustCompile(`^(services/apiserver/internal/|` +
	`services/nodeagent/internal/(runtime/cri|server|stats)/|services/scheduler/internal/extenderclient/|` +
	`kit/(cork|introspect|lanes|telemetry)/)`)

// ownGoroutines are files that start goroutines of the process itself, which ends with them: the store, the
// servers, and what runs beside these.
var ownGoroutines = []string{
	"services/apiserver/internal/app/daemon.go",
	"services/apiserver/internal/server/aggregate.go",
	"services/apiserver/internal/server/hooks.go",
	"services/apiserver/internal/server/server.go",
	"services/apiserver/internal/server/starting.go",
	"services/apiserver/internal/storage/backup/contained.go",
	"services/apiserver/internal/storage/embedded.go",
	"services/apiserver/internal/storage/member.go",
	"services/apiserver/internal/storage/opening.go",
}

// goroutines lists the lines at which code that handles requests starts a goroutine whose panic would end the
// process.
func goroutines(name string, files *token.FileSet, file *ast.File) []int {
	if strings.HasSuffix(name, "_test.go") || !requestFolders.MatchString(name) ||
		slices.Contains(ownGoroutines, name) {
		return nil
	}
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			lines = append(lines, files.Position(n.Pos()).Line)
		case *ast.CallExpr:
			if starts(n) {
				lines = append(lines, files.Position(n.Pos()).Line)
			}
		}
		return true
	})
	return lines
}

// starts reports whether a call starts a goroutine through a wait group, an errgroup, a timer or the end of a
// context. The Go of a contained.Group has more arguments.
func starts(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "Go", "TryGo":
		return len(call.Args) == 1
	case "AfterFunc":
		return true
	}
	return false
}
