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

// unitVariable is the environment variable of a process that names the file of its unit.
const unitVariable = "KEEL_UNIT"

// end stops the process of a unit, whose lock the caller holds, also a process that was started but not recorded.
func (u *Units) end(ctx context.Context, name string, r *record) error {
	if err := u.find(name, r); err != nil {
		return err
	}
	return subprocess.Stop(ctx, r.Process, stopGrace)
}

// start replaces the process of a unit, whose lock the caller holds, with a new one.
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
		// In a container this may be refused; the process runs nevertheless.
		_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(r.Process.PID), "oom_score_adj"), []byte(p.oomScore), 0)
	}
	return nil
}

// mark returns the variable in the environment of a unit's process and its children.
func (u *Units) mark(name string) string { return unitVariable + "=" + u.Path(name) }

// find looks for the process of a unit and records it, unless the record has a live process.
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

// commandOf returns the command of a process, and whether it is the process of the unit. Children of that process
// have the mark too, but another program name or session.
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
