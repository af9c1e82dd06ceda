// Package systemd runs units with the systemd of this machine: it writes their files and uses systemctl for
// everything else.
package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"keelson.dev/cli/internal/unit"
)

// runs exists on every machine that systemd runs, and on no other.
const runs = "/run/systemd/system"

// systemctl is looked for where systemd installs it: keel does not depend on the PATH.
var systemctl = []string{"/usr/bin/systemctl", "/bin/systemctl"}

// Runs reports whether systemd runs this machine.
func Runs() bool { return exists(runs) }

// Check returns an error unless systemd runs this machine.
func Check() error {
	if !Runs() {
		return fmt.Errorf("systemd does not run this machine (there is no %s): leave the flag out", runs)
	}
	return nil
}

// Installed reports whether systemctl is installed.
func Installed() bool { return program() != "" }

func program() string {
	for _, path := range systemctl {
		if exists(path) {
			return path
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Call runs systemctl and returns its output. An error contains its error output.
type Call func(ctx context.Context, args ...string) (string, error)

// Units are the units of an administrator, and systemctl.
type Units struct {
	unit.Folder
	unit.Proc
	Call Call
}

// Host is the systemd of this machine.
func Host() *Units { return &Units{Folder: "/etc/systemd/system", Proc: "/proc", Call: call} }

func call(ctx context.Context, args ...string) (string, error) {
	path := program()
	if path == "" {
		return "", fmt.Errorf("running systemctl %s: it is not installed in %s", args[0], systemctl[0])
	}
	var out, said bytes.Buffer
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append(os.Environ(), "LC_ALL=C", "SYSTEMD_PAGER=")
	command.Stdout, command.Stderr, command.WaitDelay = &out, &said, time.Second
	err := command.Run()
	if ctx.Err() != nil {
		err = ctx.Err() // it says more than the signal that has ended systemctl
	}
	if err != nil {
		return out.String(), fmt.Errorf("running systemctl %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// Reload makes systemd read the units' files.
func (u *Units) Reload(ctx context.Context) error { return u.do(ctx, "daemon-reload") }

// Enable has units start with the machine.
func (u *Units) Enable(ctx context.Context, names ...string) error {
	return u.do(ctx, "enable", names...)
}

// Disable undoes Enable.
func (u *Units) Disable(ctx context.Context, names ...string) error {
	return u.do(ctx, "disable", names...)
}

// Restart starts units, restarting those that run, and returns once systemd considers them started.
func (u *Units) Restart(ctx context.Context, names ...string) error {
	return u.do(ctx, "restart", names...)
}

// Stop ends the processes of units and returns when they are gone. A unit that systemd does not know is no error.
func (u *Units) Stop(ctx context.Context, names ...string) error {
	var failed error
	for _, name := range names {
		_, err := u.Call(ctx, "stop", name)
		if err != nil && !strings.Contains(err.Error(), "not loaded") {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Forget drops what systemd remembers of failures of units. A unit that it does not know is no error.
func (u *Units) Forget(ctx context.Context, names ...string) error {
	var failed error
	for _, name := range names {
		_, err := u.Call(ctx, "reset-failed", name)
		if err != nil && !strings.Contains(err.Error(), "not loaded") {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (u *Units) do(ctx context.Context, verb string, names ...string) error {
	_, err := u.Call(ctx, append([]string{verb}, names...)...)
	return err
}

// ShowJournal is, with the name of a unit after it, the command that shows what the unit's process has written.
const ShowJournal = "journalctl -u "

// Journal returns what journalctl shows of a unit, chosen and formatted by further arguments. What it has shown before
// an error is returned with it.
func Journal(ctx context.Context, unit string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	show := exec.CommandContext(ctx, "journalctl",
		append([]string{"--unit=" + unit, "--no-pager", "--quiet"}, args...)...)
	show.Stdout, show.Stderr = &out, &complaint
	if err := show.Run(); err != nil {
		return out.String(), fmt.Errorf("%s%s: %w: %s", ShowJournal, unit, err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}

// Log is the command that shows what a unit's process has written.
func (u *Units) Log(name string) string { return ShowJournal + name }

// Name is who runs the units.
func (u *Units) Name() string { return "systemd" }
