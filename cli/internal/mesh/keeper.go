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
	// Name is who that is.
	Name() string
	// Files reads the files of units. One that is not there is left out; a link is shown as where it leads.
	Files(names []string) (map[string]string, error)
	Write(name, content string) error
	Remove(names []string) error
	// Reload has the files of units read.
	Reload(ctx context.Context) error
	States(ctx context.Context, names []string) (map[string]unit.State, error)
	// Replaced reports whether a process runs and the program at that path is another file by now.
	Replaced(pid int, program string) bool
	// Enable has units start with the machine, or at least again when they end. Disable undoes it.
	Enable(ctx context.Context, names ...string) error
	Disable(ctx context.Context, names ...string) error
	// Restart starts units, anew where they run. Stop returns when their processes are gone.
	Restart(ctx context.Context, names ...string) error
	Stop(ctx context.Context, names ...string) error
	// Forget drops what is remembered of units that are no more.
	Forget(ctx context.Context, names ...string) error
	// Log is the file of what a unit's process writes, or the command that shows it.
	Log(name string) string
}

// units is what runs the units of the mesh.
func (m *Mesh) units() Units {
	if m.Units == nil && systemd.Runs() {
		m.Units = systemd.Host()
	}
	if m.Units == nil {
		m.Units = supervise.New(m.Layout, self())
	}
	return m.Units
}

// self is this program's file.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "keel" // what is then started by it says what is wrong
	}
	return path
}

// underSystemd reports whether systemd runs the units.
func (m *Mesh) underSystemd() bool {
	_, under := m.units().(*systemd.Units)
	return under
}

// cgroupDriver is who keeps the cgroups of Pods where units run the mesh.
func (m *Mesh) cgroupDriver() string {
	if m.underSystemd() {
		return plan.Systemd
	}
	return plan.Cgroupfs
}

// checkDriver keeps a mesh of systemd's from being run by keel itself, and the other way about.
func (m *Mesh) checkDriver() error {
	if recorded := m.State.CgroupDriver; recorded != "" && recorded != m.cgroupDriver() {
		return fmt.Errorf("--data-dir: what is in %s was made with the cgroup driver %s, for which systemd %s the "+
			"machine: choose another folder", m.Layout.Dir, recorded,
			map[bool]string{true: "has to run", false: "must not run"}[recorded == plan.Systemd])
	}
	return nil
}

// Keeper says who starts the daemons again, after they have ended and with the machine.
func (m *Mesh) Keeper() string {
	if m.underSystemd() {
		return "systemd starts it with the machine (systemctl status 'keelson-*')"
	}
	return "keel starts its daemons again when they end. To start it with the machine, have this run then:\n\n  " +
		self() + " supervise --data-dir=" + m.Layout.Dir
}

// Supervise starts again what has ended of a mesh on a machine without systemd, until ctx ends; its daemons go on then.
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
	// They have gone with the machine's last boot.
	if err := m.claimRanges(); err != nil {
		return err
	}
	return supervise.New(m.Layout, self()).Run(ctx, m.Out)
}

// Log is the file of what a daemon writes, or the command that shows it.
func (m *Mesh) Log(process string) string { return m.units().Log(plan.UnitName(process)) }
