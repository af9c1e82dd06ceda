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

// prepareNodes creates the nodes besides the machine, sets up the network between them and writes each node's
// configuration. The nodeagents set up the Pod network.
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
		// Without the rules, Pods still reach each other and the machine, which is enough for most work on one
		// machine.
		m.say("\n    Pods of further nodes cannot reach beyond this machine: %v", err)
	}
	return nil
}

// claimRanges makes the ranges of this mesh visible to other meshes on the machine.
func (m *Mesh) claimRanges() error {
	ranges := m.State.Ranges
	return host.ClaimRanges(m.Layout.Number(), slices.Concat(ranges.Pod.Networks(), ranges.Service.Networks(),
		ranges.Nodes.Networks())...)
}

// claimForUnits claims the ranges unless systemd runs the units, in whose files other meshes find them.
func (m *Mesh) claimForUnits() error {
	if m.underSystemd() {
		return nil
	}
	return m.claimRanges()
}

// nodeNetworks returns the networks of all nodes but the first, which is the machine itself.
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

// addressesBetween returns the addresses of the node at an index, one in each network between the nodes.
func addressesBetween(between plan.Range, index int) (addresses []netip.Prefix) {
	for _, network := range between.Networks() {
		addresses = append(addresses, netip.PrefixFrom(plan.NodeAddress(network, index), network.Bits()))
	}
	return addresses
}

func (m *Mesh) importImages(ctx context.Context, options Options) error {
	return m.step(ctx, "importing images", func(ctx context.Context) error { return m.importArchives(ctx, options) })
}

// importArchives imports into every node the archives that it does not have, concurrently.
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
	// containerd syncs its records but not the files that it unpacks: after a power cut, programs would be empty
	// files.
	if err := host.SyncFilesystem(ctx, files.Containerd("root")); err != nil {
		return err
	}
	for _, archive := range due {
		n.Images[archive] = sums[archive]
	}
	return nil
}

// RunningPods returns the UIDs of the Pods that have a running container on one of the mesh's nodes. The API may
// still report Pods of an earlier run as running until their nodeagent has checked.
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
