package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
)

// State is what systemd and the kernel have of a unit.
type State struct {
	plan.UnitState
	// PID is the process, 0 without one; Started is when systemd started it.
	PID     int
	Started time.Time
	// Restarts is how often systemd has started it again by itself.
	Restarts int
}

// properties are what States asks for.
const properties = "Id,ActiveState,UnitFileState,NeedDaemonReload,MainPID,ExecMainStartTimestampMonotonic,NRestarts"

// States asks for units.
func (u *Units) States(ctx context.Context, names []string) (map[string]State, error) {
	out, err := u.Call(ctx, append([]string{"show", "--property=" + properties}, names...)...)
	if err != nil {
		return nil, err
	}
	states := map[string]State{}
	for block := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		values := map[string]string{}
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values[key] = value
		}
		state, err := u.state(values)
		if err != nil {
			return nil, fmt.Errorf("reading what systemd says of %s: %w", values["Id"], err)
		}
		states[values["Id"]] = state
	}
	return states, nil
}

func (u *Units) state(values map[string]string) (State, error) {
	var state State
	state.Active = values["ActiveState"] == "active"
	state.Enabled = values["UnitFileState"] == "enabled"
	state.Stale = values["NeedDaemonReload"] == "yes"
	var err error
	if state.PID, err = strconv.Atoi(values["MainPID"]); err != nil {
		return state, fmt.Errorf("MainPID: %w", err)
	}
	if state.Restarts, err = strconv.Atoi(values["NRestarts"]); err != nil {
		return state, fmt.Errorf("NRestarts: %w", err)
	}
	if state.PID == 0 {
		return state, nil
	}
	state.Revision = u.revision(state.PID)
	started, err := strconv.ParseInt(values["ExecMainStartTimestampMonotonic"], 10, 64)
	if err != nil {
		return state, fmt.Errorf("ExecMainStartTimestampMonotonic: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return state, fmt.Errorf("reading the clock: %w", err)
	}
	state.Started = time.Now().Add(time.Duration(started)*time.Microsecond - time.Duration(now.Nano()))
	return state, nil
}

// revision is what a process was started from. One that has ended has none.
func (u *Units) revision(pid int) string {
	environment, err := os.ReadFile(u.processFile(pid, "environ"))
	if err != nil {
		return ""
	}
	for entry := range strings.SplitSeq(string(environment), "\x00") {
		if value, ok := strings.CutPrefix(entry, plan.RevisionVariable+"="); ok {
			return value
		}
	}
	return ""
}

// Replaced tells whether a process runs and the program at that path is another file by now.
func (u *Units) Replaced(pid int, program string) bool {
	running, err := os.Stat(u.processFile(pid, "exe"))
	if err != nil {
		return false
	}
	now, err := os.Stat(program)
	return err == nil && !os.SameFile(running, now)
}

func (u *Units) processFile(pid int, name string) string {
	return filepath.Join(u.Proc, strconv.Itoa(pid), name)
}
