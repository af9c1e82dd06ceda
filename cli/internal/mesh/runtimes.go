package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"keelson.dev/cli/internal/node"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/subprocess"
)

// runtimes starts the nodes' containerd, as keel's child or as a unit.
type runtimes interface {
	// ensure starts a node's containerd unless it runs, restart restarts it. Both return when it answers.
	ensure(ctx context.Context, node string) error
	restart(ctx context.Context, node string) error
}

// removePods removes all Pods of nodes through their runtime, because only the runtime can release the Pods'
// addresses.
func (m *Mesh) removePods(ctx context.Context, nodes []string, run runtimes) error {
	return m.step(ctx, "removing Pods", func(whole context.Context) error {
		ctx, cancel := mostOf(whole)
		defer cancel()
		err := m.askRuntimes(ctx, nodes, run)
		if err != nil && ctx.Err() != nil && whole.Err() == nil {
			return fmt.Errorf("removing Pods: not done after two thirds of the time that --timeout left: %w", err)
		}
		return err
	})
}

// mostOf returns a context with two thirds of the remaining time; the rest is for removing the leftovers by force.
func mostOf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-time.Until(end)/3))
}

func (m *Mesh) askRuntimes(ctx context.Context, nodes []string, run runtimes) error {
	errs := make([]error, len(nodes))
	var wait sync.WaitGroup
	for i, name := range nodes {
		if errs[i] = run.ensure(ctx, name); errs[i] != nil {
			continue
		}
		wait.Go(func() { _, errs[i] = node.RemovePods(ctx, m.Layout.Node(name)) })
	}
	wait.Wait()
	for i, name := range nodes {
		if errs[i] == nil || ctx.Err() != nil {
			continue
		}
		errs[i] = m.removeAfterRestart(ctx, name, run)
	}
	// An earlier run may have left a stand-in, too.
	for _, name := range nodes {
		errs = append(errs, node.RemoveStandIn(m.Layout.Node(name)))
	}
	return errors.Join(errs...)
}

// removeAfterRestart restarts a containerd that has failed to remove Pods, and tries again. containerd considers
// the containers of a killed shim as running until it is restarted, and it removes no Pod while it knows no
// network.
func (m *Mesh) removeAfterRestart(ctx context.Context, name string, run runtimes) error {
	files, index := m.Layout.Node(name), slices.Index(m.State.NodeNames(), name)
	if err := node.EnsureNetwork(files, m.Layout.BridgeName(index)); err != nil {
		return err
	}
	if err := run.restart(ctx, name); err != nil {
		return err
	}
	_, err := node.RemovePods(ctx, files)
	return err
}

// childRuntimes are the runtimes that keel itself has started and recorded.
type childRuntimes struct{ *Mesh }

func (r childRuntimes) ensure(ctx context.Context, name string) error {
	process, _ := r.State.Find(plan.ContainerdProcess(name))
	if process.Alive() {
		return nil
	}
	return r.revive(ctx, process)
}

func (r childRuntimes) restart(ctx context.Context, name string) error {
	process, _ := r.State.Find(plan.ContainerdProcess(name))
	if err := subprocess.Stop(ctx, process, daemonGrace); err != nil {
		return err
	}
	return r.revive(ctx, process)
}

func (r childRuntimes) revive(ctx context.Context, process subprocess.Process) error {
	name, _ := plan.NodeOfContainerd(process.Name)
	if err := removeStaleSocket(r.Layout.Node(name).Socket()); err != nil {
		return err
	}
	restarted, err := subprocess.Restart(process)
	if err != nil {
		return err
	}
	r.State.Put(restarted)
	if err := r.State.Save(r.Layout); err != nil {
		return err
	}
	return subprocess.WaitReady(ctx, restarted, r.readiness(nil, plan.Process{Name: process.Name}))
}

// unitRuntimes is the runtime of a machine whose daemons are units.
type unitRuntimes struct{ *Mesh }

func (r unitRuntimes) ensure(ctx context.Context, name string) error {
	unit := plan.UnitName(plan.ContainerdProcess(name))
	states, err := r.units().States(ctx, []string{unit})
	if err != nil {
		return err
	}
	if states[unit].Active {
		return nil
	}
	return r.restart(ctx, name)
}

func (r unitRuntimes) restart(ctx context.Context, name string) error {
	process := plan.Process{Name: plan.ContainerdProcess(name)}
	unit := plan.UnitName(process.Name)
	if err := r.units().Restart(ctx, unit); err != nil {
		return fmt.Errorf("starting containerd: %w", err)
	}
	return r.awaitUnit(ctx, nil, plan.Unit{Name: unit, Process: process})
}
