package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"keelson.dev/kit/subprocess"
)

// unitVariable is the variable of a process that names the file of the unit by which it was started.
const unitVariable = "KEEL_UNIT"

// end ends the process of a unit, whose lock the caller holds, also one that somebody has started and not recorded any
// more.
func (u *Units) end(ctx context.Context, name string, r *record) error {
	if err := u.find(name, r); err != nil {
		return err
	}
	return subprocess.Stop(ctx, r.Process, stopGrace)
}

// start starts the process of a unit, whose lock the caller holds, in place of the one that it has.
func (u *Units) start(ctx context.Context, name string, r *record) error {
	if err := u.end(ctx, name, r); err != nil {
		return err
	}
	content, err := os.ReadFile(u.Path(name))
	if err != nil {
		return fmt.Errorf("reading the unit: %w", err)
	}
	p, err := parse(string(content))
	if err != nil {
		return err
	}
	for _, module := range p.modules {
		_ = exec.CommandContext(ctx, "/sbin/modprobe", module).Run() // see program
	}
	p.command.Name, p.command.Log = name, u.Log(name)
	p.command.Env = append(p.command.Env, u.mark(name))
	if r.Process, err = subprocess.Start(p.command); err != nil {
		return err
	}
	if p.oomScore != "" {
		// In a container it may be refused; the process runs as well.
		_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(r.Process.PID), "oom_score_adj"), []byte(p.oomScore), 0)
	}
	return nil
}

// mark is in the environment of a unit's process, and of what that has started.
func (u *Units) mark(name string) string { return unitVariable + "=" + u.Path(name) }

// find puts the process of a unit into its record where that has none that runs.
func (u *Units) find(name string, r *record) error {
	if r.Process.Alive() {
		return nil
	}
	entries, err := os.ReadDir(string(u.Proc))
	if err != nil {
		return fmt.Errorf("looking for a process of %s: %w", name, err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		command, ours := u.commandOf(name, pid)
		if !ours {
			continue
		}
		found, err := subprocess.Of(command, pid)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return err
		}
		if found.Alive() {
			r.Process = found
			return nil
		}
	}
	return nil
}

// commandOf is what a process was started with, if a unit's process it is: what that has started has its mark too, and
// another session.
func (u *Units) commandOf(name string, pid int) (command subprocess.Command, ours bool) {
	dir := filepath.Join(string(u.Proc), strconv.Itoa(pid))
	environment, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), u.mark(name)) {
		return command, false
	}
	words, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return command, false
	}
	content, err := os.ReadFile(u.Path(name))
	if err != nil {
		return command, false
	}
	p, err := parse(string(content))
	argv := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
	if err != nil || filepath.Base(argv[0]) != filepath.Base(p.command.Path) {
		return command, false
	}
	return subprocess.Command{Name: name, Path: argv[0], Args: argv[1:], Dir: p.command.Dir, Log: u.Log(name)}, true
}
