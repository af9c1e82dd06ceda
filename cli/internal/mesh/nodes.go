package mesh

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/node"
	"keelson.dev/cli/internal/plan"
)

// prepareNodes makes the nodes beside the machine, sets the network between them up and writes each one's
// configuration. The network of their Pods is the nodeagents' part.
func (m *Mesh) prepareNodes(options Options) error {
	if !m.State.Units {
		if err := host.EnsureHosts(m.Layout, m.State.NodeNames()); err != nil {
			return err
		}
	}
	if m.State.Ranges.Nodes.IsValid() {
		if err := m.prepareNetworks(); err != nil {
			return err
		}
	}
	sysResource, err := host.HasSysResource()
	if err != nil {
		return err
	}
	input, err := m.processInput(options.Programs, options.LogLevel)
	if err != nil {
		return err
	}
	for _, n := range m.State.Nodes {
		err := node.WriteConfig(plan.ContainerdInput{Node: m.Layout.Node(n.Name), Programs: options.Programs,
			Streams: input.StreamAddress(n.Name), SysResource: sysResource, CgroupDriver: m.State.CgroupDriver})
		if err != nil {
			return err
		}
	}
	return nil
}

// prepareNetworks sets up what several nodes on one machine need.
func (m *Mesh) prepareNetworks() error {
	ranges := m.State.Ranges
	if err := host.EnableForwarding(ranges.Pod.Dual()); err != nil {
		return err
	}
	if err := m.claimRanges(); err != nil {
		return err
	}
	for _, pods := range ranges.Pod.Networks() {
		if err := host.ReserveRange(pods); err != nil {
			return err
		}
	}
	if err := host.EnsureBridge(m.Layout.NodesBridge(), addressesBetween(ranges.Nodes, 0)...); err != nil {
		return err
	}
	networks, err := m.nodeNetworks()
	if err != nil {
		return err
	}
	for _, network := range networks {
		if err := host.EnsureNode(network); err != nil {
			return err
		}
	}
	if !m.Network().Masquerade {
		return nil
	}
	if err := host.SetNetworkRules(m.Layout.NetworkTable(), ranges.Nodes, ranges.Pod); err != nil {
		// Without them Pods still reach each other and the machine, which is all that most work on one machine needs.
		m.say("\n    Pods of further nodes cannot reach beyond this machine: %v", err)
	}
	return nil
}

// claimRanges has other meshes of the machine see the ranges of this one.
func (m *Mesh) claimRanges() error {
	ranges := m.State.Ranges
	return host.ClaimRanges(m.Layout.Number(), slices.Concat(ranges.Pod.Networks(), ranges.Service.Networks(),
		ranges.Nodes.Networks())...)
}

// claimForUnits does so where no unit of systemd's tells of them.
func (m *Mesh) claimForUnits() error {
	if m.underSystemd() {
		return nil
	}
	return m.claimRanges()
}

// nodeNetworks are those of all nodes but the first, which is on the machine itself.
func (m *Mesh) nodeNetworks() ([]host.NodeNetwork, error) {
	between := m.State.Ranges.Nodes
	if !between.IsValid() {
		return nil, nil
	}
	_, advertise, err := m.addresses()
	if err != nil {
		return nil, err
	}
	var networks []host.NodeNetwork
	for i, n := range m.State.Nodes {
		if i == 0 {
			continue
		}
		networks = append(networks, host.NodeNetwork{
			File: m.Layout.NetNS(n.Name), Link: m.Layout.LinkName(i), Bridge: m.Layout.NodesBridge(),
			Addresses: addressesBetween(between, i), Gateways: addressesBetween(between, 0),
			Machine: advertise, MTU: host.MTU(advertise),
		})
	}
	return networks, nil
}

// addressesBetween are those of the node at an index, one in each network between the nodes.
func addressesBetween(between plan.Range, index int) (addresses []netip.Prefix) {
	for _, network := range between.Networks() {
		addresses = append(addresses, netip.PrefixFrom(plan.NodeAddress(network, index), network.Bits()))
	}
	return addresses
}

func (m *Mesh) importImages(ctx context.Context, options Options) error {
	return m.step(ctx, "importing images", func(ctx context.Context) error { return m.importArchives(ctx, options) })
}

// importArchives gives every node the archives that it does not have, the nodes side by side.
func (m *Mesh) importArchives(ctx context.Context, options Options) error {
	archives, err := node.Archives(options.Images)
	if err != nil {
		return err
	}
	sums, err := node.Sums(ctx, archives)
	if err != nil {
		return err
	}
	errs := make([]error, len(m.State.Nodes))
	var wait sync.WaitGroup
	for i := range m.State.Nodes {
		wait.Go(func() { errs[i] = m.importInto(ctx, i, options.Programs, archives, sums) })
	}
	wait.Wait()
	return errors.Join(append(errs, m.State.Save(m.Layout))...)
}

func (m *Mesh) importInto(ctx context.Context, index int, programs string, archives []string,
	sums map[string]string) error {
	n := &m.State.Nodes[index]
	if n.Images == nil {
		n.Images = map[string]string{}
	}
	files := m.Layout.Node(n.Name)
	due := plan.ImagesDue(archives, sums, n.Images)
	for _, archive := range due {
		if err := node.ImportImage(ctx, programs, files, archive); err != nil {
			return err
		}
	}
	if len(due) == 0 {
		return nil
	}
	// containerd syncs its records but not what it unpacks: after a power cut, programs would be empty files.
	if err := host.SyncFilesystem(ctx, files.Containerd("root")); err != nil {
		return err
	}
	for _, archive := range due {
		n.Images[archive] = sums[archive]
	}
	return nil
}

// RunningPods tells which Pods have a container that runs on one of the mesh's nodes, by UID. The API may say so of
// Pods of an earlier run, until their nodeagent has looked.
func (m *Mesh) RunningPods(ctx context.Context) (map[types.UID]bool, error) {
	running := map[types.UID]bool{}
	for _, n := range m.State.Nodes {
		uids, err := node.RunningPods(ctx, m.Layout.Node(n.Name))
		if err != nil {
			return nil, err
		}
		for _, uid := range uids {
			running[types.UID(uid)] = true
		}
	}
	return running, nil
}
