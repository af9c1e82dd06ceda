package mesh

import (
	"context"
	"errors"
	"net/netip"
	"os"

	"keelson.dev/cli/internal/state"
)

// Purpose is the command for which a machine is examined.
type Purpose string

// The commands that start nodes.
const (
	ForInit Purpose = "init"
	ForJoin Purpose = "join"
	ForUp   Purpose = "up"
)

// Purposes lists all purposes.
var Purposes = []string{string(ForInit), string(ForJoin), string(ForUp)}

// Preflight examines the machine as that command would before it writes anything, and changes nothing. Before a
// machine has joined, Preflight cannot check whether the mesh's ranges are free on it, because it does not know
// them.
func Preflight(ctx context.Context, m *Mesh, options Options, purpose Purpose) Findings {
	options.CgroupDriver = m.cgroupDriver()
	settle := m.settle
	switch purpose {
	case ForInit:
		options.Nodes = 1
	case ForJoin:
		options.Nodes, options.Join = 1, &Joining{}
		settle = (&worker{Mesh: m, asked: true}).settleBeforehand // the mesh is not asked
	case ForUp:
		options.CgroupDriver, options.Children = "", true
		settle = m.settleChildren
	}
	return m.findings(ctx, options, settle)
}

// settleBeforehand does the part of settle that needs no answer from the mesh.
func (w *worker) settleBeforehand(ctx context.Context, options Options) error {
	var err error
	if w.State, err = state.Load(w.Layout); err == nil && w.State.Worker() && w.joined() {
		return w.settle(ctx, options)
	}
	if err == nil && !w.State.Worker() {
		return w.ownMesh()
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if options.NodeName, err = w.nodeName(options.NodeName); err != nil {
		return err
	}
	active, err := w.activeProcesses(ctx, options.NodeName)
	if err != nil {
		return err
	}
	w.State.Units, w.State.Nodes = true, []state.Node{{Name: options.NodeName}}
	w.State.Server = "https://0.0.0.0" // makes the record one of a worker, of any mesh
	w.State.BindAddress = netip.IPv4Unspecified().String()
	w.State.Advertise = w.State.BindAddress
	if err := w.decideSettings(options); err != nil {
		return err
	}
	return w.decidePorts(options, active)
}

// settleChildren is the settling for keel up.
func (m *Mesh) settleChildren(_ context.Context, options Options) error {
	var err error
	m.State, err = state.Load(m.Layout)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if m.State.Units {
		return m.ofUnits()
	}
	if options.Nodes, err = nodeCount(err != nil, len(m.State.Nodes), options.Nodes); err != nil {
		return err
	}
	return m.decide(options, m.running())
}
