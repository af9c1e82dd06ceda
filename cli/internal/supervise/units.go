// Package supervise runs units on machines without systemd. The files of the units have systemd's form and lie in
// the mesh's own folder, each beside the record of its process. A keel command that starts or stops a process does
// so under the lock of the unit, and records it; the supervisor, a separate keel process, only restarts processes
// that are recorded as wanted and have ended. So either may be killed at any instruction: a running process is
// found by its record or, if that was not written, by its environment and command.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"keelson.dev/cli/internal/filelock"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/unit"
)

// stopGrace is how long a process may take to end after SIGTERM, as under systemd.
const stopGrace = 90 * time.Second

// Units are the units of a mesh and the supervisor that restarts them.
type Units struct {
	unit.Folder
	unit.Proc
	layout plan.Layout
	// keel is the program that runs as the supervisor.
	keel string
}

// New returns the units of a mesh; keel is the program of the supervisor.
func New(layout plan.Layout, keel string) *Units {
	return &Units{Folder: unit.Folder(layout.Units()), Proc: "/proc", layout: layout, keel: keel}
}

// Name returns the name of the program that runs the units.
func (u *Units) Name() string { return "keel supervise" }

// Log returns the log file of a unit's process.
func (u *Units) Log(name string) string { return u.layout.Log(strings.TrimSuffix(name, unitSuffix)) }

const (
	unitSuffix   = ".service"
	recordSuffix = ".json"
	lockSuffix   = ".lock"
)

// Write writes the file of a unit.
func (u *Units) Write(name, content string) error {
	if err := os.MkdirAll(string(u.Folder), 0o700); err != nil {
		return fmt.Errorf("making the folder of the units: %w", err)
	}
	return u.Folder.Write(name, content)
}

// States returns the states of units.
func (u *Units) States(_ context.Context, names []string) (map[string]unit.State, error) {
	supervisor, err := u.load(supervisorName)
	if err != nil {
		return nil, err
	}
	enabled := u.current(supervisor.Process)
	states := map[string]unit.State{}
	for _, name := range names {
		r, err := u.load(name)
		if err != nil {
			return nil, err
		}
		state := unit.State{Restarts: r.Restarts}
		state.Enabled = enabled
		if state.Active = r.Process.Alive(); state.Active {
			state.PID, state.Started = r.Process.PID, r.Process.Started
			state.Revision = u.Revision(state.PID)
		}
		states[name] = state
	}
	return states, nil
}

// Reload does nothing: the file of a unit is read at each start.
func (u *Units) Reload(context.Context) error { return nil }

// Enable makes sure that a supervisor of this keel runs, which restarts the units that have ended.
func (u *Units) Enable(ctx context.Context, _ ...string) error { return u.ensureSupervisor(ctx) }

// Disable marks the units as unwanted, so that the supervisor does not restart them.
func (u *Units) Disable(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := u.change(ctx, name, func(r *record) error { r.Wanted = false; return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Restart starts units, restarting those that run, and returns once their processes exist.
func (u *Units) Restart(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := u.change(ctx, name, func(r *record) error {
			r.Wanted, r.Restarts = true, 0
			if err := u.save(name, *r); err != nil {
				return err // from here on the supervisor continues if this process ends
			}
			return u.start(ctx, name, r)
		}); err != nil {
			return fmt.Errorf("starting %s: %w", name, err)
		}
	}
	return nil
}

// Stop ends the processes of units and returns when they are gone.
func (u *Units) Stop(ctx context.Context, names ...string) error {
	var failed error
	for _, name := range names {
		if err := u.change(ctx, name, func(r *record) error {
			r.Wanted = false
			if err := u.save(name, *r); err != nil {
				return err
			}
			return u.end(ctx, name, r)
		}); err != nil {
			failed = errors.Join(failed, fmt.Errorf("stopping %s: %w", name, err))
		}
	}
	return failed
}

// Forget removes the records of units and stops the supervisor.
func (u *Units) Forget(ctx context.Context, names ...string) error {
	failed := u.stopSupervisor(ctx)
	var files []string
	for _, name := range append(names, supervisorName) {
		files = append(files, name+recordSuffix, name+lockSuffix)
	}
	return errors.Join(failed, u.Remove(files))
}

// change locks a unit, so that no other process starts or stops it meanwhile, and records the result.
func (u *Units) change(ctx context.Context, name string, do func(*record) error) error {
	unlock, err := filelock.Wait(ctx, u.Path(name+lockSuffix))
	if err != nil {
		return err
	}
	defer unlock()
	r, err := u.load(name)
	if err != nil {
		return err
	}
	return errors.Join(do(&r), u.save(name, r))
}
