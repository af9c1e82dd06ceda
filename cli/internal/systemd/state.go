package systemd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/unit"
)

// properties are the properties that States reads.
const properties = "Id,ActiveState,UnitFileState,NeedDaemonReload,MainPID,ExecMainStartTimestampMonotonic,NRestarts"

// States returns the states of units.
func (u *Units) States(ctx context.Context, names []string) (map[string]unit.State, error) {
	out, err := u.Call(ctx, append([]string{"show", "--property=" + properties}, names...)...)
	if err != nil {
		return nil, err
	}
	states := map[string]unit.State{}
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

func (u *Units) state(values map[string]string) (unit.State, error) {
	var state unit.State
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
	state.Revision = u.Revision(state.PID)
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
