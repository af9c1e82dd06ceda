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
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/cli/internal/systemd"
	"keelson.dev/kit/subprocess"
)

// daemonGrace is how long a daemon may take to end its requests. containerd has none left by then.
const daemonGrace = 20 * time.Second

// Down stops every process of the mesh and removes everything that its nodes have left in the kernel. The data
// stays: a later Up continues from it. Every step is taken even after one has failed. Processes that run when ctx
// ends are killed.
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
	if m.State.Units {
		return m.ofUnits()
	}
	// The agents stop first, or they would restart the Pods that are removed.
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

// stopProcesses stops the processes whose name which accepts, concurrently, and drops the ended ones from the
// record.
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
		stopped = m.always("stopping "+strings.Join(names, ", "), stop)
	}
	m.State.Processes = slices.DeleteFunc(m.State.Processes, func(p subprocess.Process) bool {
		return which(p.Name) && !p.Alive()
	})
	return errors.Join(stopped, m.State.Save(m.Layout))
}

// takeNodesDown removes the Pods through their runtime, which knows their networks, and then everything that is
// left.
func (m *Mesh) takeNodesDown(ctx context.Context) error {
	if len(m.State.Nodes) == 0 {
		return nil
	}
	var failed error
	if known := m.knownRuntimes(); len(known) > 0 {
		// After a boot, the mounts of a runtime that has to be restarted are gone.
		failed = errors.Join(host.EnsureHosts(m.Layout, known), m.removePods(ctx, known, childRuntimes{m}))
	}
	failed = errors.Join(failed, m.stopProcesses(ctx,
		func(name string) bool { _, ok := plan.NodeOfContainerd(name); return ok }))
	return errors.Join(failed, m.sweep(ctx))
}

// knownRuntimes returns the nodes whose containerd was started since the last Down.
func (m *Mesh) knownRuntimes() []string {
	var nodes []string
	for _, process := range m.State.Processes {
		if name, ok := plan.NodeOfContainerd(process.Name); ok {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// sweep removes what the runtime would have removed had it not been killed.
func (m *Mesh) sweep(ctx context.Context) error {
	var failed error
	for _, n := range m.State.Nodes {
		host.KillByArgument("containerd-shim-runc-v2", m.Layout.Node(n.Name).Socket())
	}
	failed = errors.Join(failed, m.removeCgroups(ctx), host.RemoveHosts(m.Layout), host.UnmountBelow(m.Layout.Nodes()))
	for _, n := range m.State.Nodes {
		files := m.Layout.Node(n.Name)
		// No Pod is left, so every address is free, even one that the runtime failed to release.
		failed = errors.Join(failed, host.RemoveShimSockets(files.Containerd("state")),
			host.Empty(files.Containerd("runc")), host.Empty(files.CNI("addresses")))
	}
	networks, err := m.nodeNetworks()
	failed = errors.Join(failed, err)
	for _, network := range networks {
		failed = errors.Join(failed, host.RemoveNode(network))
	}
	failed = errors.Join(failed, host.RemoveLinks(m.Layout.LinkPrefix()), m.removeRoutes(),
		host.RemoveTables(m.Layout.Tables()...))
	if failed != nil {
		return failed // leftovers may use the ranges, so they stay claimed
	}
	return host.ClaimRanges(m.Layout.Number())
}

// removeRoutes removes the routes into the Pod range, unless another mesh has claimed the range since this one was
// down.
func (m *Mesh) removeRoutes() error {
	claimed, err := host.ClaimedByOthers(m.Layout.Number())
	if err != nil {
		return err
	}
	var failed error
	for _, pods := range m.State.Ranges.Pod.Networks() {
		if slices.ContainsFunc(claimed, pods.Overlaps) {
			continue
		}
		failed = errors.Join(failed, host.RemovePodRoutes(pods))
		if m.State.Ranges.Nodes.IsValid() {
			failed = errors.Join(failed, host.ReleaseRange(pods))
		}
	}
	return failed
}

// removeCgroups ends the processes in the Pods' cgroups and removes these. It also stops the slice, which systemd
// would otherwise keep in its list.
func (m *Mesh) removeCgroups(ctx context.Context) error {
	if m.State.CgroupDriver != plan.Systemd {
		return host.RemoveCgroups(ctx, m.Layout.CgroupRoot())
	}
	failed := host.RemoveCgroups(ctx, "/"+m.Layout.CgroupSlice())
	if !systemd.Runs() {
		return failed
	}
	return errors.Join(failed, m.units().Stop(ctx, m.Layout.CgroupSlice()))
}
