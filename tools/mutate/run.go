package mutate

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// goShim stands for the go command where gremlins asks for coverage. gremlins breaks covered code only, and to coverage
// the conditions of a switch's cases and all constants are not covered, which decisions are full of. So all is said to
// be.
const goShim = `#!/bin/sh
case " $* " in
*" -coverprofile "*) "$MUTATE_GO" "$@" || exit $? ;;
*) exec "$MUTATE_GO" "$@" ;;
esac
while [ "$1" != -coverprofile ]; do shift; done
cat "$MUTATE_COVERED" >>"$2"
`

// patience is how many times as long as usual the tests of a package may take before a mutant counts as hung.
const patience = 10

// Runner runs gremlins on a copy of a module: it stands for itself, outside of the workspace, in a folder of any name.
type Runner struct {
	// Root is the repository, Module a folder below it, Gremlins the program.
	Root, Module, Gremlins string
	// Workers is how many mutants are tested at the same time.
	Workers int
	// Progress takes what gremlins says.
	Progress io.Writer

	folder, copied, name string
}

// Prepare makes the copy and returns what removes it.
func (r *Runner) Prepare() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the copy of %s: %w", r.Module, err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	r.folder, r.copied = dir, filepath.Join(dir, "module")
	module := filepath.Join(r.Root, r.Module)
	if err := os.CopyFS(r.copied, os.DirFS(module)); err != nil {
		remove()
		return nil, fmt.Errorf("copying %s: %w", r.Module, err)
	}
	if r.name, err = detach(filepath.Join(r.copied, "go.mod"), module); err != nil {
		remove()
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		remove()
		return nil, fmt.Errorf("making a folder for the go command: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "go"), []byte(goShim), 0o755); err != nil {
		remove()
		return nil, fmt.Errorf("standing in for the go command: %w", err)
	}
	return remove, nil
}

// detach makes the paths of modules that stand beside this one absolute, and returns the module's own.
func detach(file, module string) (name string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading what the module requires: %w", err)
	}
	mod, err := modfile.Parse(file, content, nil)
	if err != nil {
		return "", fmt.Errorf("reading what the module requires: %w", err)
	}
	for _, replaced := range mod.Replace {
		if !modfile.IsDirectoryPath(replaced.New.Path) || filepath.IsAbs(replaced.New.Path) {
			continue
		}
		beside := filepath.Join(module, replaced.New.Path)
		if err := mod.AddReplace(replaced.Old.Path, replaced.Old.Version, beside, ""); err != nil {
			return "", fmt.Errorf("replacing %s: %w", replaced.Old.Path, err)
		}
	}
	if content, err = mod.Format(); err != nil {
		return "", fmt.Errorf("writing what the module requires: %w", err)
	}
	return mod.Module.Mod.Path, os.WriteFile(file, content, 0o644)
}

// Run breaks one package. Its tests run once before, so that the time they take is known and not that of a first build.
func (r *Runner) Run(ctx context.Context, p Package) (Outcome, error) {
	if err := r.command(ctx, "go", "test", "-cover", "./"+p.Dir+"/...").Run(); err != nil {
		return Outcome{}, fmt.Errorf("%s: the tests fail with nothing broken: %w", p.Dir, err)
	}
	report := filepath.Join(r.folder, "report.json")
	_ = os.Remove(report)
	var covered strings.Builder
	for _, name := range p.Decisions {
		fmt.Fprintf(&covered, "%s/%s/%s:1.1,1000000.1 1 1\n", r.name, p.Dir, name)
	}
	if err := os.WriteFile(filepath.Join(r.folder, "covered"), []byte(covered.String()), 0o644); err != nil {
		return Outcome{}, fmt.Errorf("saying what is covered of %s: %w", p.Dir, err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return Outcome{}, err
	}
	args := []string{"unleash", "--output", report, "--workers", strconv.Itoa(r.Workers),
		"--timeout-coefficient", strconv.Itoa(patience), "--invert-logical", "--invert-loopctrl"}
	for _, other := range p.Others {
		args = append(args, "--exclude-files", "^"+regexp.QuoteMeta(other)+"$")
	}
	gremlins := r.command(ctx, r.Gremlins, append(args, p.Dir)...)
	gremlins.Env = append(gremlins.Env, "MUTATE_GO="+goCommand, "MUTATE_COVERED="+filepath.Join(r.folder, "covered"),
		"PATH="+filepath.Join(r.folder, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := gremlins.Run(); err != nil {
		return Outcome{}, fmt.Errorf("breaking %s: %w", p.Dir, err)
	}
	content, err := os.ReadFile(report)
	if err != nil && !os.IsNotExist(err) {
		return Outcome{}, fmt.Errorf("reading the report on %s: %w", p.Dir, err)
	}
	return read(p.Dir, content)
}

// command runs in the copy. No result of a test is taken from the cache: how long it takes matters.
func (r *Runner) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = r.copied
	flags := strings.TrimSpace(os.Getenv("GOFLAGS") + " -count=1 -vet=off -ldflags=-w")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+flags)
	cmd.Stdout, cmd.Stderr = r.Progress, r.Progress
	return cmd
}
