package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// Reset ends what Init or Join has started: it removes units, Pods, and everything that the node has left in the
// kernel. The data stays, and a later Init or Join continues from it. Processes and Pods are ended even after a
// step has failed, and the next run completes an interrupted one. A machine that shares the store leaves it first;
// force resets the machine without that.
func Reset(ctx context.Context, m *Mesh, force bool) error {
	own, err := m.ownUnits()
	if err != nil {
		return err
	}
	if _, err := os.Stat(m.Layout.State()); errors.Is(err, os.ErrNotExist) && len(own) == 0 {
		m.say("nothing was initialized in %s", m.Layout.Dir)
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("root is needed to end Pods and to remove units: run keel as root")
	}
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.loadForReset(); err != nil {
		return err
	}
	if err := m.endUnits(ctx, own, force); err != nil {
		return err
	}
	if err := m.step(ctx, "removing the units", func(ctx context.Context) error {
		return errors.Join(m.units().Remove(own), m.units().Reload(ctx), m.units().Forget(ctx, own...))
	}); err != nil {
		return err
	}
	m.sayReset()
	return nil
}

// endUnits stops the units' processes, after this machine has left the store that it shares.
func (m *Mesh) endUnits(ctx context.Context, own []string, force bool) error {
	sharing := m.sharesStore(own)
	if sharing && !force {
		if err := m.leaveStore(ctx); err != nil {
			return err
		}
	}
	var failed error
	if len(own) > 0 {
		failed = m.units().Disable(ctx, own...)
	}
	// A unit whose process may still run keeps its file, by which the next Reset finds it.
	if failed = errors.Join(failed, m.stopUnits(ctx, own)); failed != nil || !sharing {
		return failed
	}
	return m.retireStore(ctx)
}

// sayReset prints what is left. A node is not allowed to delete its own Node object.
func (m *Mesh) sayReset() {
	if m.State.ControlPlane {
		m.say("reset; certificates, images and volumes are kept in %s: keel join goes on from them", m.Layout.Dir)
		m.say("The Node stays in the mesh until somebody on another machine takes it away: kubectl delete node %s",
			strings.Join(m.State.NodeNames(), " "))
		return
	}
	if !m.State.Worker() {
		m.say("reset; store, certificates, images and volumes are kept in %s: keel init goes on from them",
			m.Layout.Dir)
		return
	}
	m.say("reset; certificates, images and volumes are kept in %s: keel join goes on from them", m.Layout.Dir)
	m.say("The Node stays in the mesh at %s until somebody there takes it away: kubectl delete node %s",
		m.State.Server, strings.Join(m.State.NodeNames(), " "))
}

// ownUnits returns the existing units of this mesh, in start order.
func (m *Mesh) ownUnits() ([]string, error) {
	files, err := m.units().Files(plan.UnitNames())
	if err != nil {
		return nil, err
	}
	var own []string
	for _, name := range plan.UnitNames() {
		if plan.OwnsUnit(m.Layout, files[name]) {
			own = append(own, name)
		}
	}
	return own, nil
}

// loadForReset reads the record. If the record has been removed, it takes the nodes' names from their folders.
func (m *Mesh) loadForReset() error {
	var err error
	m.State, err = state.Load(m.Layout)
	if errors.Is(err, os.ErrNotExist) {
		m.State.Units, m.State.CgroupDriver = true, m.cgroupDriver()
		entries, err := os.ReadDir(m.Layout.Nodes())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("looking for the nodes: %w", err)
		}
		for _, entry := range entries {
			m.State.Nodes = append(m.State.Nodes, state.Node{Name: entry.Name()})
		}
		return nil
	}
	if err == nil && !m.State.Units {
		return fmt.Errorf("--data-dir: %s holds a mesh of keel up: keel down ends it", m.Layout.Dir)
	}
	return err
}

// stopUnits ends the units' processes and the Pods. The agent stops first, or it would restart the Pods that are
// removed; the apiserver stops last.
func (m *Mesh) stopUnits(ctx context.Context, own []string) error {
	stop := func(which func(unit string) bool) error {
		chosen := slices.DeleteFunc(slices.Clone(own), func(unit string) bool { return !which(unit) })
		if len(chosen) == 0 {
			return nil
		}
		return m.step(ctx, "stopping "+strings.Join(chosen, ", "), func(ctx context.Context) error {
			return m.units().Stop(ctx, chosen...)
		})
	}
	agent, containerd := plan.UnitName(plan.NodeagentProcess("")), plan.UnitName(plan.ContainerdProcess(""))
	failed := stop(func(unit string) bool { return unit == agent })
	if slices.Contains(own, containerd) {
		failed = errors.Join(failed, m.removePods(ctx, m.State.NodeNames(), unitRuntimes{m}))
	}
	failed = errors.Join(failed, stop(func(unit string) bool { return unit == containerd }))
	failed = errors.Join(failed, m.sweep(ctx))
	server := plan.UnitName(plan.APIServer)
	failed = errors.Join(failed, stop(func(unit string) bool {
		return unit != agent && unit != containerd && unit != server
	}))
	return errors.Join(failed, stop(func(unit string) bool { return unit == server }))
}
