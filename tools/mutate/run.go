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

	copied string
}

// Prepare makes the copy and returns what removes it.
func (r *Runner) Prepare() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the copy of %s: %w", r.Module, err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	r.copied = filepath.Join(dir, "module")
	module := filepath.Join(r.Root, r.Module)
	if err := os.CopyFS(r.copied, os.DirFS(module)); err != nil {
		remove()
		return nil, fmt.Errorf("copying %s: %w", r.Module, err)
	}
	if err := detach(filepath.Join(r.copied, "go.mod"), module); err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}

// detach makes the paths of modules that stand beside this one absolute.
func detach(file, module string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading what the module requires: %w", err)
	}
	mod, err := modfile.Parse(file, content, nil)
	if err != nil {
		return fmt.Errorf("reading what the module requires: %w", err)
	}
	for _, replaced := range mod.Replace {
		if !modfile.IsDirectoryPath(replaced.New.Path) || filepath.IsAbs(replaced.New.Path) {
			continue
		}
		beside := filepath.Join(module, replaced.New.Path)
		if err := mod.AddReplace(replaced.Old.Path, replaced.Old.Version, beside, ""); err != nil {
			return fmt.Errorf("replacing %s: %w", replaced.Old.Path, err)
		}
	}
	if content, err = mod.Format(); err != nil {
		return fmt.Errorf("writing what the module requires: %w", err)
	}
	return os.WriteFile(file, content, 0o644)
}

// Run breaks one package. Its tests run once before, so that the time they take is known and not that of a first build.
func (r *Runner) Run(ctx context.Context, p Package) (Outcome, error) {
	if err := r.command(ctx, "go", "test", "-cover", "./"+p.Dir+"/...").Run(); err != nil {
		return Outcome{}, fmt.Errorf("%s: the tests fail with nothing broken: %w", p.Dir, err)
	}
	report := filepath.Join(filepath.Dir(r.copied), "report.json")
	_ = os.Remove(report)
	args := []string{"unleash", "--output", report, "--workers", strconv.Itoa(r.Workers),
		"--timeout-coefficient", strconv.Itoa(patience), "--invert-logical", "--invert-loopctrl"}
	for _, other := range p.Others {
		args = append(args, "--exclude-files", "^"+regexp.QuoteMeta(other)+"$")
	}
	if err := r.command(ctx, r.Gremlins, append(args, p.Dir)...).Run(); err != nil {
		return Outcome{}, fmt.Errorf("breaking %s: %w", p.Dir, err)
	}
	content, err := os.ReadFile(report)
	if err != nil && !os.IsNotExist(err) {
		return Outcome{}, fmt.Errorf("reading the report on %s: %w", p.Dir, err)
	}
	functions := map[string]lines{}
	for _, name := range p.Decisions {
		source, err := os.ReadFile(filepath.Join(r.copied, p.Dir, name))
		if err != nil {
			return Outcome{}, fmt.Errorf("reading %s: %w", p.Dir, err)
		}
		if functions[name], err = functionLines(source); err != nil {
			return Outcome{}, fmt.Errorf("parsing %s/%s: %w", p.Dir, name, err)
		}
	}
	return read(p.Dir, content, functions)
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
