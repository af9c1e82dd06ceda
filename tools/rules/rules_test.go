// Package rules shows that each rule of .golangci.yml triggers: a rule that never fires is as good as none.
package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toyReport is what golangci-lint prints of an issue, as far as the test reads it.
type toyReport struct {
	Issues []struct {
		FromLinter, Text string
		Pos              struct{ Filename string }
	}
}

func TestEachRuleTriggersInTheToyModule(t *testing.T) {
	var issues toyReport
	for _, service := range []string{"services/apiserver", "services/scheduler", "services/nodeagent", "cli"} {
		issues.Issues = append(issues.Issues, lintToy(t, service).Issues...)
	}
	for _, want := range []struct{ file, linter, text string }{
		{"refusal/refusal.go", "depguard", "use package negotiated"},
		{"bind/forbidden.go", "depguard", "k8s.io/kubernetes"},
		{"bind/forbidden.go", "depguard", "k8s.io/apiserver"},
		{"bind/forbidden.go", "depguard", "keelson.dev/services/podgc"},
		{"bind/budget.go", "funlen", "Long"},
		{"bind/budget.go", "cyclop", "Branchy"},
		{"bind/budget.go", "lll", "121 characters"},
		{"bind/suspect.go", "staticcheck", "SA4000"},
		{"containerlog/open.go", "forbidigo", "os.Open"},
		{"containerlog/open.go", "forbidigo", "os.ReadFile"},
		{"server/server_test.go", "forbidigo", "klog.ClearLogger"},
		{"command/wait.go", "forbidigo", "c.Context"},
		{"command/wait.go", "forbidigo", "context.Background"},
		{"command/wait.go", "forbidigo", "context.WithoutCancel"},
		{"command/wait.go", "forbidigo", "time.Sleep"},
		{"command/wait.go", "forbidigo", "exec.Command"},
		{"command/print.go", "forbidigo", "fmt.Println"},
		{"command/print.go", "forbidigo", "os.Stdout"},
		{"rules/fit/fit.go", "revive", "package comment"},
		{"rules/fit/fit.go", "revive", "Undocumented"},
	} {
		if !take(&issues, want.file, want.linter, want.text) {
			t.Errorf("%s says nothing about %s in %s", want.linter, want.text, want.file)
		}
	}
	// What is left would be a false alarm: the file that no container may write, the file of a test, the one place that
	// makes a command's context.
	for _, issue := range issues.Issues {
		t.Errorf("%s: unexpected: %s (%s)", issue.Pos.Filename, issue.Text, issue.FromLinter)
	}
}

// lintToy runs the pinned linter, which make builds where it is missing, on a toy module.
func lintToy(t *testing.T, module string) toyReport {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-s", "-C", root, "golangci-lint").CombinedOutput(); err != nil {
		t.Fatalf("building the linter: %v\n%s", err, out)
	}
	cmd := exec.Command(filepath.Join(root, "bin", "golangci-lint"), "run", "--config",
		filepath.Join(root, ".golangci.yml"),
		"--output.json.path", "stdout", "--output.text.path", os.DevNull, "--show-stats=false", "--max-same-issues",
		"0",
		"--allow-parallel-runners", "./...")
	cmd.Dir = filepath.Join("testdata/toy", filepath.FromSlash(module))
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var said strings.Builder
	cmd.Stderr = &said
	out, _ := cmd.Output() // the exit status only says that there are issues, as expected
	line, _, _ := strings.Cut(string(out), "\n")
	var report toyReport
	if err := json.Unmarshal([]byte(line), &report); err != nil {
		t.Fatalf("reading the linter's report: %v\n%s%s", err, out, said.String())
	}
	return report
}

// take removes the first issue that matches.
func take(report *toyReport, file, linter, text string) bool {
	for i, issue := range report.Issues {
		if issue.FromLinter == linter && strings.HasSuffix(issue.Pos.Filename, file) &&
			strings.Contains(issue.Text, text) {
			report.Issues = append(report.Issues[:i], report.Issues[i+1:]...)
			return true
		}
	}
	return false
}
