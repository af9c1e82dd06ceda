// Package supervise runs units on machines without systemd. The files of the units have systemd's form and lie in the
// mesh's own folder, each beside the record of its process. Whoever starts or ends a process does so itself, under the
// lock of the unit, and records it; the supervisor, a process of keel's own, only starts again what is recorded as
// wanted and has ended. So either may be killed at any instruction: what runs is found by its record or, where that was
// not written any more, by what it was started with.
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

// stopGrace is how long a process may take to end when it is asked to, as systemd gives it.
const stopGrace = 90 * time.Second

// Units are the units of a mesh, and what runs them.
type Units struct {
	unit.Folder
	unit.Proc
	layout plan.Layout
	// keel is the program that the supervisor is started by.
	keel string
}

// New has the units of a mesh, whose supervisor is started by a program: keel's own.
func New(layout plan.Layout, keel string) *Units {
	return &Units{Folder: unit.Folder(layout.Units()), Proc: "/proc", layout: layout, keel: keel}
}

// Name is who runs the units.
func (u *Units) Name() string { return "keel supervise" }

// Log is the file of what a unit's process writes.
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

// States asks for units.
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

// Enable has a supervisor of this keel's run, which starts again the units that have ended.
func (u *Units) Enable(ctx context.Context, _ ...string) error { return u.ensureSupervisor(ctx) }

// Disable has nobody start the units again.
func (u *Units) Disable(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := u.change(ctx, name, func(r *record) error { r.Wanted = false; return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Restart starts units, anew where they run, and returns once their processes exist.
func (u *Units) Restart(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := u.change(ctx, name, func(r *record) error {
			r.Wanted, r.Restarts = true, 0
			if err := u.save(name, *r); err != nil {
				return err // from here on the supervisor goes on, should this process end
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

// Forget removes what is recorded of units, and ends the supervisor.
func (u *Units) Forget(ctx context.Context, names ...string) error {
	failed := u.stopSupervisor(ctx)
	var files []string
	for _, name := range append(names, supervisorName) {
		files = append(files, name+recordSuffix, name+lockSuffix)
	}
	return errors.Join(failed, u.Remove(files))
}

// change has nobody else start or end a unit's process meanwhile, and records what it has become.
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
