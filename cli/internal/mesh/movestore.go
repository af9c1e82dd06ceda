package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// StoreMove is a move of the mesh's store to do.
type StoreMove struct {
	// Embedded is set if the store goes back into the data directory.
	Embedded bool
	// Etcd is the etcd cluster; nil means the recorded one.
	Etcd *plan.Etcd
	// Run runs a store command of the apiserver's program, which moves the store and does nothing where it was moved
	// before.
	Run func(args []string) error
}

// MoveStore moves the store of the mesh, whose apiserver must not run, and records where it is, so that the next start
// uses it. It resumes an interrupted run: until the record is written, the apiserver refuses the store that was left.
func (m *Mesh) MoveStore(ctx context.Context, move StoreMove) error {
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if m.State, err = state.Load(m.Layout); err != nil {
		return err
	}
	etcd := move.Etcd
	if etcd == nil {
		etcd = m.State.Etcd
	}
	if err := m.mayMove(ctx, etcd); err != nil {
		return err
	}
	to, recorded := "etcd", etcd
	if move.Embedded {
		to, recorded = "embedded", nil
	}
	args := append([]string{"migrate", "--to=" + to, "--data-dir=" + m.Layout.APIServer()}, etcd.Flags()...)
	if err := move.Run(args); err != nil {
		return err
	}
	m.State.Etcd = recorded
	if err := m.State.Save(m.Layout); err != nil {
		return err
	}
	if err := m.rewriteAPIServer(ctx); err != nil {
		return err
	}
	_, start := m.stopAndStart()
	m.say("%s says where the store is: %s starts the apiserver with it", m.Layout.State(), start)
	return nil
}

// mayMove says in one sentence why the store cannot be moved now.
func (m *Mesh) mayMove(ctx context.Context, etcd *plan.Etcd) error {
	switch {
	case m.State.ControlPlane:
		return errors.New("this machine has joined the control plane of a mesh, whose machines share an embedded " +
			"store: keel reset --yes on all but the first machine takes them out, and the first one's store can " +
			"be moved")
	case etcd == nil:
		return fmt.Errorf("--etcd-servers is missing: %s names no etcd cluster", m.Layout.State())
	}
	processes, err := m.Processes(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(processes, func(p Process) bool { return p.Name == plan.APIServer && p.Alive }) {
		stop, _ := m.stopAndStart()
		return fmt.Errorf("the apiserver runs: %s ends it", stop)
	}
	return nil
}

// stopAndStart returns the commands that stop and start the apiserver.
func (m *Mesh) stopAndStart() (stop, start string) {
	switch {
	case !m.State.Units:
		return "keel down", "keel up"
	case m.underSystemd():
		return "systemctl stop keelson-apiserver", "systemctl start keelson-apiserver"
	}
	return "keel reset --yes", "keel init"
}

// rewriteAPIServer has the apiserver's unit name the store, and starts nothing. Without that unit there is nothing to
// do: who makes it reads the record.
func (m *Mesh) rewriteAPIServer(ctx context.Context) error {
	name := plan.UnitName(plan.APIServer)
	if !m.State.Units {
		return nil
	}
	own, err := m.ownUnits()
	if err != nil || !slices.Contains(own, name) {
		return err
	}
	files, err := m.units().Files([]string{name})
	if err != nil {
		return err
	}
	programs, level := plan.UnitOptions(files[name])
	tiers, err := m.renderUnits(programs, level)
	if err != nil {
		return err
	}
	units := slices.DeleteFunc(slices.Concat(tiers...), func(u plan.Unit) bool { return u.Name != name })
	changes, err := m.unitChanges(ctx, units)
	if err != nil {
		return err
	}
	changes.Enable = nil
	return m.applyChanges(ctx, changes)
}
