package mutate

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"keelson.dev/tools/decisions"
)

func TestDecisions(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{
		"internal/bind/decide.go", "internal/bind/decide_more.go", "internal/bind/act.go",
		"internal/bind/decide_test.go",
		"internal/queue/queue.go", "internal/queue/sub/other.go", "internal/queues/no.go",
		"internal/rules/rules.go", "internal/rules/fit/rule.go", "internal/rules/testdata/decide.go", "internal/act.go",
	} {
		content := "package p\n"
		if slices.Contains([]string{"queue.go", "rules.go", "rule.go"}, path.Base(name)) {
			content = decisions.Marker + "\n" + content
		}
		files["services/s/"+name] = &fstest.MapFile{Data: []byte(content)}
	}
	files["services/other/internal/bind/decide.go"] = &fstest.MapFile{}
	got, err := Decisions(files, "services/s")
	want := []Package{
		{Dir: "internal/bind", Decisions: []string{"decide.go", "decide_more.go"}, Others: []string{"act.go"}},
		{Dir: "internal/queue", Decisions: []string{"queue.go"}, Others: []string{"sub/other.go"}},
		{Dir: "internal/rules", Decisions: []string{"rules.go"}, Others: []string{"fit/rule.go"}},
		{Dir: "internal/rules/fit", Decisions: []string{"rule.go"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, %v, want %+v", got, err, want)
	}
	if _, err := Decisions(files, "services/none"); err == nil {
		t.Error("a module that is not there has decisions")
	}
}

// The packages of this repository are marked.
func TestDecisionsOfTheRepository(t *testing.T) {
	packages, err := Decisions(os.DirFS("../.."), "services/scheduler")
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, p := range packages {
		dirs = append(dirs, p.Dir)
	}
	for _, want := range []string{"internal/queue", "internal/rules", "internal/rules/noderesourcesfit"} {
		if !slices.Contains(dirs, want) {
			t.Errorf("%s is not among %v", want, dirs)
		}
	}
	if slices.Contains(dirs, "internal/bind") {
		t.Error("what does I/O is among the decisions")
	}
}

func TestOutcome(t *testing.T) {
	report := `{"files": [{"file_name": "a.go", "mutations": [
		{"type": "INVERT_LOGICAL", "status": "KILLED", "line": 5, "column": 1},
		{"type": "INVERT_LOGICAL", "status": "TIMED OUT", "line": 6, "column": 1},
		{"type": "INVERT_LOGICAL", "status": "KILLED", "line": 6, "column": 2},
		{"type": "INVERT_LOGICAL", "status": "NOT VIABLE", "line": 6, "column": 3},
		{"type": "INVERT_LOGICAL", "status": "LIVED", "line": 8, "column": 7},
		{"type": "CONDITIONALS_BOUNDARY", "status": "LIVED", "line": 10, "column": 4}]}]}`
	got, err := read("d", []byte(report))
	want := Outcome{Dir: "d", Killed: 2, TimedOut: 1, Survivors: []string{"d/a.go:10:4 conditionals_boundary",
		"d/a.go:8:7 invert_logical"}}
	if err != nil || !reflect.DeepEqual(got, want) || got.Rate() != 60 {
		t.Errorf("read %+v of rate %v, %v, want %+v of 60", got, got.Rate(), err, want)
	}
	if none, err := read("d", nil); err != nil || none.Rate() != 100 {
		t.Errorf("a package without mutants has rate %v, %v", none.Rate(), err)
	}
	if _, err := read("d", []byte(strings.ReplaceAll(report, "LIVED", "ODD"))); err == nil {
		t.Error("a status that nobody knows is passed over")
	}
	var out bytes.Buffer
	Write(&out, []Outcome{want, {Dir: "e", Killed: 5}})
	for _, line := range []string{"survived d/a.go:8:7 invert_logical\n",
		"survived d/a.go:10:4 conditionals_boundary\n", "  60.0%\n", " 100.0%\n", "  80.0%\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

// All of a package's decisions count as covered, and a failure stays one.
func TestGoShim(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{
		"shim": goShim, "covered": "all\n",
		"go": "#!/bin/sh\n[ \"$1\" = fail ] && exit 2\n[ \"$2\" = -coverprofile ] && echo some >\"$3\"\nexit 0\n",
	} {
		if err := os.WriteFile(path(name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) int {
		cmd := exec.Command(path("shim"), args...)
		cmd.Env = append(os.Environ(), "MUTATE_GO="+path("go"), "MUTATE_COVERED="+path("covered"))
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	if code := run("test", "-coverprofile", path("profile"), "./..."); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if content, err := os.ReadFile(path("profile")); err != nil || string(content) != "some\nall\n" {
		t.Errorf("the profile is %q, %v", content, err)
	}
	for _, args := range [][]string{{"fail"}, {"fail", "-coverprofile", path("profile")}} {
		if code := run(args...); code != 2 {
			t.Errorf("%v: exit status %d, want 2", args, code)
		}
	}
	if code := run("test", "./..."); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// The copy finds the modules that stand beside the one it was made of.
func TestPrepare(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"services/s/go.mod": "module m\n\ngo 1.26.0\n\nrequire b v0.0.0\n\nreplace b => ../../kit\n\nreplace c => d " +
			"v1.0.0\n",
		"services/s/p/p.go":  "package p\n",
		"services/s/go.sum":  "",
		"services/other.txt": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := Runner{Root: root, Module: "services/s"}
	remove, err := r.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(r.copied, "go.mod"))
	if err != nil || !strings.Contains(string(mod), "replace b => "+filepath.Join(root, "kit")+"\n") ||
		!strings.Contains(string(mod), "replace c => d v1.0.0\n") {
		t.Errorf("go.mod is %s, %v", mod, err)
	}
	if _, err := os.Stat(filepath.Join(r.copied, "p", "p.go")); err != nil {
		t.Error(err)
	}
	remove()
	if _, err := os.Stat(r.copied); !os.IsNotExist(err) {
		t.Errorf("the copy is left behind: %v", err)
	}
}
