package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/cli/internal/supervise"
	"keelson.dev/cli/internal/systemd"
	"keelson.dev/cli/internal/unit"
)

// Units runs the units of a mesh, as packages systemd and supervise do.
type Units interface {
	// Name is the name of the program that runs them.
	Name() string
	// Files reads the files of units. A missing file is left out; for a link it returns the target.
	Files(names []string) (map[string]string, error)
	Write(name, content string) error
	Remove(names []string) error
	// Reload makes the runner read the files of units.
	Reload(ctx context.Context) error
	States(ctx context.Context, names []string) (map[string]unit.State, error)
	// Replaced reports whether a process runs and the program at that path has been replaced since.
	Replaced(pid int, program string) bool
	// Program is where the program of a running process can be read, also if its file has been replaced since.
	Program(pid int) string
	// Enable makes units start with the machine, or at least restart when they end. Disable undoes it.
	Enable(ctx context.Context, names ...string) error
	Disable(ctx context.Context, names ...string) error
	// Restart starts units and restarts those that run. Stop returns when their processes are gone.
	Restart(ctx context.Context, names ...string) error
	Stop(ctx context.Context, names ...string) error
	// Forget drops the recorded state of removed units.
	Forget(ctx context.Context, names ...string) error
	// Log is the log file of a unit's process, or the command that shows the log.
	Log(name string) string
}

// units returns the runner of the mesh's units.
func (m *Mesh) units() Units {
	if m.Units == nil && systemd.Runs() {
		m.Units = systemd.Host()
	}
	if m.Units == nil {
		m.Units = supervise.New(m.Layout, self())
	}
	return m.Units
}

// self returns the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "keel" // starting it then reports what is wrong
	}
	return path
}

// underSystemd reports whether systemd runs the units.
func (m *Mesh) underSystemd() bool {
	_, under := m.units().(*systemd.Units)
	return under
}

// cgroupDriver returns the driver of the Pods' cgroups for a mesh that units run.
func (m *Mesh) cgroupDriver() string {
	if m.underSystemd() {
		return plan.Systemd
	}
	return plan.Cgroupfs
}

// checkDriver returns an error if systemd made the mesh and keel itself would run it, or vice versa.
func (m *Mesh) checkDriver() error {
	if recorded := m.State.CgroupDriver; recorded != "" && recorded != m.cgroupDriver() {
		return fmt.Errorf("--data-dir: what is in %s was made with the cgroup driver %s, for which systemd %s the "+
			"machine: choose another folder", m.Layout.Dir, recorded,
			map[bool]string{true: "has to run", false: "must not run"}[recorded == plan.Systemd])
	}
	return nil
}

// Keeper returns a text that says what restarts the daemons after they have ended, and what starts them with the
// machine.
func (m *Mesh) Keeper() string {
	if m.underSystemd() {
		return "systemd starts it with the machine (systemctl status 'keelson-*')"
	}
	return "keel starts its daemons again when they end. To start it with the machine, have this run then:\n\n  " +
		self() + " supervise --data-dir=" + m.Layout.Dir
}

// Supervise restarts the ended daemons of a mesh on a machine without systemd until ctx ends; the daemons keep
// running then.
func Supervise(ctx context.Context, m *Mesh) error {
	if m.underSystemd() {
		return errors.New("systemd runs this machine, and with it the units of keel init and keel join")
	}
	var err error
	if m.State, err = state.Load(m.Layout); errors.Is(err, os.ErrNotExist) || err == nil && !m.State.Units {
		return fmt.Errorf("--data-dir: %s holds no mesh of keel init or keel join", m.Layout.Dir)
	}
	if err != nil {
		return err
	}
	// The claims were lost at the machine's last boot.
	if err := m.claimRanges(); err != nil {
		return err
	}
	return supervise.New(m.Layout, self()).Run(ctx, m.Out)
}

// Log returns the log file of a daemon, or the command that shows the log.
func (m *Mesh) Log(process string) string { return m.units().Log(plan.UnitName(process)) }
