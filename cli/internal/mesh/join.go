package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// Joining is what a machine joins a mesh by.
type Joining struct {
	// Address is where the apiserver is asked at first, Token and Pins are why it is believed. Without an address the
	// machine is brought up to date that has joined already.
	Address string
	Token   discovery.Token
	Pins    []string
	// ControlPlane tells that the machine gets an apiserver and a copy of the store; Key opens what it needs for that.
	ControlPlane bool
	Key          invite.Key
	// NodeIP is the node's address; the zero Addr leaves the choice to the plan.
	NodeIP netip.Addr
}

// worker is a machine that joins a mesh.
type worker struct {
	*Mesh
	// found is the mesh that was asked for, once it has answered.
	found *discovery.Mesh
	// trusts are the authorities, in PEM, by which a machine that has joined before knows its mesh, and server is the
	// URL at which the mesh says that it is now; empty where it does not say. asked reports whether the mesh was asked
	// for both, or is not to be.
	trusts []byte
	server string
	asked  bool
}

// Join makes this machine a node of a mesh that another machine runs, or brings it up to date, and waits until the node
// is ready. What a run that was cut off has left is taken up where it is.
func Join(ctx context.Context, m *Mesh, options Options) error {
	options.Nodes, options.CgroupDriver = 1, m.cgroupDriver()
	recorded, err := state.Load(m.Layout)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if options.Join.ControlPlane || recorded.ControlPlane && options.Join.Address == "" {
		return joinControlPlane(ctx, m, options)
	}
	w := &worker{Mesh: m}
	// All that can be known beforehand is looked at before anything is written.
	if err := m.check(ctx, options, w.settle); err != nil {
		return err
	}
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	tiers, err := m.prepareUnits(ctx, options, w.settle, w.prepare)
	if err != nil {
		return err
	}
	if err := m.install(ctx, options, tiers); err != nil {
		return err
	}
	// The agent goes on by its certificate: nobody has to find the token here.
	if err := os.Remove(m.workerFiles().BootstrapKubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the token: %w", err)
	}
	return w.report(ctx)
}

// workerFiles are those of the only node.
func (m *Mesh) workerFiles() plan.NodeLayout { return m.Layout.Node(m.State.Nodes[0].Name) }

// joined tells whether the agent has had a certificate.
func (m *Mesh) joined() bool {
	if len(m.State.Nodes) == 0 {
		return false
	}
	_, err := os.Stat(m.workerFiles().Kubeconfig())
	return err == nil
}

// settle is the settling of keel join.
func (w *worker) settle(ctx context.Context, options Options) error {
	var err error
	w.State, err = state.Load(w.Layout)
	fresh := errors.Is(err, os.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	if !fresh {
		if err := w.expectWorker(); err != nil {
			return err
		}
	}
	joined := w.joined()
	if err := w.follow(ctx, joined); err != nil {
		return err
	}
	if err := w.find(ctx, options.Join, joined); err != nil {
		return err
	}
	if w.found != nil {
		if err := w.adopt(&options); err != nil {
			return err
		}
	}
	w.State.Server, w.State.Units = cmp.Or(w.server, w.State.Server), true
	if options.NodeName, err = w.nodeName(options.NodeName); err != nil {
		return err
	}
	if err := w.checkName(ctx, options.NodeName, joined); err != nil {
		return err
	}
	if err := w.decideAddressTowards(ctx, options.Join.NodeIP); err != nil {
		return err
	}
	active, err := w.activeProcesses(ctx, options.NodeName)
	if err != nil {
		return err
	}
	return w.decide(options, active)
}

// expectWorker refuses a machine that is more than a worker, and one whose containers would need other cgroups.
func (w *worker) expectWorker() error {
	if w.State.ControlPlane {
		return fmt.Errorf("--data-dir: %s is of a machine that has joined the control plane: leave address and token "+
			"out, or add --control-plane and %s", w.Layout.Dir, invite.KeyFlag)
	}
	if !w.State.Worker() {
		return w.ownMesh()
	}
	return w.checkDriver()
}

// ownMesh says that the machine has a mesh of its own.
func (w *worker) ownMesh() error {
	return fmt.Errorf("--data-dir: %s holds a mesh of this machine's own: end it (keel reset, keel down) and remove "+
		"the folder, or choose another one", w.Layout.Dir)
}

// find asks for the mesh, once, unless nothing is asked for.
func (w *worker) find(ctx context.Context, asked *Joining, joined bool) error {
	switch {
	case w.found != nil:
		return nil
	case asked.Address == "" && joined:
		return nil
	case asked.Address == "":
		return errors.New("this machine has not joined a mesh yet: keel token create --print-join-command on the " +
			"mesh's first machine prints by what it does")
	}
	found, err := discovery.Find(ctx, asked.Address, asked.Token, asked.Pins)
	if err != nil && joined {
		return fmt.Errorf("%w (this machine has joined before: keel join alone brings it up to date)", err)
	}
	if err != nil {
		return err
	}
	w.found = found
	return nil
}

// adopt takes over what the mesh says of its nodes, unless the machine is of another mesh.
func (w *worker) adopt(options *Options) error {
	if err := w.sameMesh(w.trusts); err != nil {
		return err
	}
	w.server = w.found.Server
	w.adoptSettings(options)
	return nil
}

// sameMesh refuses another mesh than the one of whose authorities the machine knows; none before it has joined.
func (w *worker) sameMesh(own []byte) error {
	if len(own) > 0 && !discovery.ShareAuthority(own, w.found.CA) {
		return fmt.Errorf("--data-dir: %s is of %s: keel reset ends it; remove the folder then", w.Layout.Dir,
			w.ofAnother())
	}
	return nil
}

// ofAnother says of which mesh the machine is, when it is not the one that was asked for.
func (w *worker) ofAnother() string {
	if w.State.Worker() {
		return "a worker of another mesh, which was at " + w.State.Server
	}
	return "a machine of the control plane of another mesh"
}

// adoptSettings takes over how the mesh's nodes are to be.
func (w *worker) adoptSettings(options *Options) {
	given := w.found.Settings
	w.State.VXLAN = given.VXLAN
	options.PodRange, options.ServiceRange = given.Pod, given.Service
	options.PodNetwork, options.ServiceProxy = given.PodNetwork, given.ServiceProxy
	options.DNS, options.Domain = given.DNS, given.Domain
}

// checkName keeps another machine of the mesh from losing its name to this one.
func (w *worker) checkName(ctx context.Context, name string, joined bool) error {
	if w.found == nil || joined {
		return nil
	}
	living, err := w.found.Living(ctx, name)
	if err != nil {
		return err
	}
	if living {
		return fmt.Errorf("--node-name: the mesh has a node %s, which is alive: give this machine another name, or "+
			"end that one and wait a minute", name)
	}
	return nil
}

// decideAddressTowards records the node's address, by which a worker reaches the mesh.
func (w *worker) decideAddressTowards(ctx context.Context, asked netip.Addr) error {
	server, err := url.Parse(w.State.Server)
	if err != nil {
		return fmt.Errorf("reading server of %s: %w", w.Layout.State(), err)
	}
	return w.decideNodeAddress(ctx, asked, server.Host)
}

// decideNodeAddress records the node's address, by which the machine reaches the apiserver at HOST:PORT; where its own
// apiserver listens, on every address, a worker has none.
func (w *worker) decideNodeAddress(ctx context.Context, asked netip.Addr, server string) (err error) {
	in := plan.NodeAddressInput{Asked: asked}
	in.Recorded, _ = netip.ParseAddr(w.State.Advertise) // a new worker has none
	if in.Addresses, err = w.machineAddresses(); err != nil {
		return err
	}
	if !in.Asked.IsValid() && !slices.Contains(in.Addresses, in.Recorded) {
		if in.Source, err = host.SourceTowards(ctx, server); err != nil {
			return err
		}
	}
	address, err := plan.DecideNodeAddress(in)
	if err != nil {
		return err
	}
	w.State.BindAddress, w.State.Advertise = netip.IPv4Unspecified().String(), address.String()
	return nil
}

// prepare makes what the processes find on their start.
func (w *worker) prepare(options Options) error {
	bundle := w.trusts
	if w.found != nil {
		bundle = w.found.CA
	}
	if len(bundle) > 0 {
		agent := w.workerFiles().Kubeconfig()
		if err := pki.EnsureForeignAuthorities(w.Layout, agent, w.State.Server, bundle); err != nil {
			return err
		}
	}
	if err := w.prepareNodes(options); err != nil {
		return err
	}
	if w.found == nil {
		return nil
	}
	return pki.EnsureBootstrapKubeconfig(w.workerFiles().BootstrapKubeconfig(), w.found.Server, w.found.CA,
		options.Join.Token.String())
}
