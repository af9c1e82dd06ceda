package mesh

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/node"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/kit/subprocess"
)

// Grace periods: a daemon ends its requests, containerd has nothing to do any more.
const (
	daemonGrace = 20 * time.Second
	removeLimit = 2 * time.Minute
)

// Down ends every process of the mesh and everything that its nodes have left on the machine. The data stays: a later
// Up goes on from it. Every step is taken even after one has failed.
func Down(ctx context.Context, m *Mesh) error {
	if _, err := os.Stat(m.Layout.State()); errors.Is(err, os.ErrNotExist) {
		m.say("nothing is up in %s", m.Layout.Dir)
		return nil
	}
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if m.State, err = state.Load(m.Layout); err != nil {
		return err
	}
	// The agents go first, or they would start again what is taken away.
	failed := m.stopProcesses(ctx, func(name string) bool { _, ok := plan.NodeOfAgent(name); return ok })
	failed = errors.Join(failed, m.takeNodesDown(ctx))
	failed = errors.Join(failed, m.stopProcesses(ctx, func(name string) bool { return name != plan.APIServer }))
	failed = errors.Join(failed, m.stopProcesses(ctx, func(string) bool { return true }))
	if failed != nil {
		return failed
	}
	m.say("down; the data is kept in %s", m.Layout.Dir)
	return nil
}

// stopProcesses stops those that a name stands for, side by side, and forgets the ones that are gone.
func (m *Mesh) stopProcesses(ctx context.Context, which func(name string) bool) error {
	var chosen []subprocess.Process
	var names []string
	for _, process := range m.State.Processes {
		if which(process.Name) {
			chosen = append(chosen, process)
			if process.Alive() {
				names = append(names, process.Name)
			}
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	errs := make([]error, len(chosen))
	stop := func() error {
		var wait sync.WaitGroup
		for i, process := range chosen {
			wait.Go(func() { errs[i] = subprocess.Stop(ctx, process, daemonGrace) })
		}
		wait.Wait()
		return errors.Join(errs...)
	}
	var stopped error
	if len(names) > 0 {
		stopped = m.step("stopping "+strings.Join(names, ", "), stop)
	}
	m.State.Processes = slices.DeleteFunc(m.State.Processes, func(p subprocess.Process) bool {
		return which(p.Name) && !p.Alive()
	})
	return errors.Join(stopped, m.State.Save(m.Layout))
}

// takeNodesDown removes the Pods through their runtime, which knows their networks, and then whatever is left.
func (m *Mesh) takeNodesDown(ctx context.Context) error {
	if len(m.State.Nodes) == 0 {
		return nil
	}
	var failed error
	if m.runtimeKnown() {
		failed = m.step("removing Pods", func() error { return m.removePods(ctx) })
	}
	failed = errors.Join(failed, m.stopProcesses(ctx,
		func(name string) bool { _, ok := plan.NodeOfContainerd(name); return ok }))
	return errors.Join(failed, m.sweep())
}

// runtimeKnown tells whether a containerd was started since the last Down.
func (m *Mesh) runtimeKnown() bool {
	return slices.ContainsFunc(m.State.Processes, func(p subprocess.Process) bool {
		_, ok := plan.NodeOfContainerd(p.Name)
		return ok
	})
}

func (m *Mesh) removePods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	errs := make([]error, len(m.State.Nodes))
	var wait sync.WaitGroup
	for i, n := range m.State.Nodes {
		process, ok := m.State.Find(plan.ContainerdProcess(n.Name))
		if !ok {
			continue
		}
		if !process.Alive() {
			// A containerd that was killed comes back for this: only it can give the Pods' addresses back.
			if errs[i] = m.revive(ctx, process); errs[i] != nil {
				continue
			}
		}
		wait.Go(func() { _, errs[i] = node.RemovePods(ctx, m.Layout.Node(n.Name)) })
	}
	wait.Wait()
	for i, n := range m.State.Nodes {
		if errs[i] != nil && ctx.Err() == nil {
			errs[i] = m.removePodsAnew(ctx, n.Name)
		}
	}
	return errors.Join(errs...)
}

// removePodsAnew starts a node's containerd again and removes what is left of its Pods. A containerd goes on taking the
// containers of a shim that was killed for running, refuses to remove them, and sees the truth only when it starts.
func (m *Mesh) removePodsAnew(ctx context.Context, name string) error {
	process, _ := m.State.Find(plan.ContainerdProcess(name))
	if err := subprocess.Stop(ctx, process, daemonGrace); err != nil {
		return err
	}
	if err := m.revive(ctx, process); err != nil {
		return err
	}
	_, err := node.RemovePods(ctx, m.Layout.Node(name))
	return err
}

func (m *Mesh) revive(ctx context.Context, process subprocess.Process) error {
	name, _ := plan.NodeOfContainerd(process.Name)
	if err := removeStaleSocket(m.Layout.Node(name).Socket()); err != nil {
		return err
	}
	restarted, err := subprocess.Restart(process)
	if err != nil {
		return err
	}
	m.State.Put(restarted)
	if err := m.State.Save(m.Layout); err != nil {
		return err
	}
	return subprocess.WaitReady(ctx, restarted, m.readiness(nil, plan.Process{Name: process.Name}))
}

// sweep removes what the runtime would have removed had it not been killed.
func (m *Mesh) sweep() error {
	var failed error
	for _, n := range m.State.Nodes {
		host.KillByArgument("containerd-shim-runc-v2", m.Layout.Node(n.Name).Socket())
	}
	failed = errors.Join(failed, m.removeCgroups(), host.UnmountBelow(m.Layout.Nodes()))
	for _, n := range m.State.Nodes {
		files := m.Layout.Node(n.Name)
		// No Pod is left, so every address is free, whatever the runtime failed to give back.
		failed = errors.Join(failed, host.RemoveShimSockets(files.Containerd("state")),
			host.Empty(files.Containerd("runc")),
			host.Empty(files.CNI("addresses")), host.RemoveLink(n.Bridge))
	}
	networks, err := m.nodeNetworks()
	failed = errors.Join(failed, err)
	for _, network := range networks {
		failed = errors.Join(failed, host.RemoveNode(network))
	}
	return errors.Join(failed, host.RemoveLink(m.Layout.NodesBridge()), host.ReleaseRange(m.State.Ranges.Pod),
		host.RemoveTables(m.Layout.Tables()...))
}

// removeCgroups ends what still runs in the Pods' cgroups. Slices are stopped too: systemd would keep them in its list.
func (m *Mesh) removeCgroups() error {
	if m.State.CgroupDriver != plan.Systemd {
		return host.RemoveCgroups(m.Layout.CgroupRoot())
	}
	return errors.Join(host.RemoveCgroups("/"+m.Layout.CgroupSlice()), host.StopUnit(m.Layout.CgroupSlice()))
}
