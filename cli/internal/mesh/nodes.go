package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/node"
	"keelson.dev/cli/internal/plan"
)

// prepareNodes sets the network up and writes each node's configuration.
func (m *Mesh) prepareNodes(options UpOptions) error {
	sysResource, err := host.HasSysResource()
	if err != nil {
		return err
	}
	if err := host.EnableForwarding(); err != nil {
		return err
	}
	guarded := m.setNetworkRules()
	if guarded != nil {
		// Without them Pods still reach each other and the machine, which is all that most work on one machine needs.
		m.say("\n    Pods cannot reach beyond this machine: %v", guarded)
	}
	for _, n := range m.State.Nodes {
		podRange, err := netip.ParsePrefix(n.Range)
		if err != nil {
			return fmt.Errorf("reading the range of %s in %s: %w", n.Name, m.Layout.State(), err)
		}
		if err := host.EnsureBridge(n.Bridge, podRange, plan.FirstAddress(podRange)); err != nil {
			return err
		}
		if guarded == nil {
			if err := host.RouteLoopback(n.Bridge); err != nil {
				return err
			}
		}
		files := m.Layout.Node(n.Name)
		err = node.WriteConfig(
			plan.ContainerdInput{Node: files, Programs: options.Programs, SysResource: sysResource},
			plan.CNIInput{Node: files, Bridge: n.Bridge, Range: podRange, PortTable: m.Layout.PortTable()},
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Mesh) setNetworkRules() error {
	_, advertise, err := m.addresses()
	if err != nil {
		return err
	}
	const servicePort = 443
	return host.SetNetworkRules(m.Layout.NetworkTable(), m.State.Ranges.Pod, host.Service{
		Address: plan.FirstAddress(m.State.Ranges.Service), Port: servicePort,
		Target: netip.AddrPortFrom(advertise, uint16(m.State.Ports[plan.APIServer])),
	}, m.Layout.BridgePrefix())
}

// importImages gives every node the archives that it does not have, the nodes side by side.
func (m *Mesh) importImages(ctx context.Context, options UpOptions) error {
	archives, err := node.Archives(options.Images)
	if err != nil {
		return err
	}
	sums, err := node.Sums(archives)
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
	for _, archive := range plan.ImagesDue(archives, sums, n.Images) {
		if err := node.ImportImage(ctx, programs, m.Layout.Node(n.Name), archive); err != nil {
			return err
		}
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
