package processes

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keelson.dev/test/scenario"
)

// Known returns those of args, each --flag=value, whose flags a program has by its own help, which command asks for. `make
// bench-pair` measures programs that are older than what the flags turn off.
func Known(t testing.TB, program string, command, args []string) []string {
	t.Helper()
	help, err := exec.Command(filepath.Join(scenario.BinDir(), program),
		append(slices.Clone(command), "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("asking %s for its flags: %v\n%s", program, err, help)
	}
	return known(string(help), args)
}

func known(help string, args []string) []string {
	words := strings.Fields(help)
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return !slices.Contains(words, flag)
	})
}
