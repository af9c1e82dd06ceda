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

// Joining holds what a machine needs to join a mesh.
type Joining struct {
	// Address is the apiserver's address for the first request; Token and Pins authenticate it. Without an
	// address, a machine that has already joined is updated.
	Address string
	Token   discovery.Token
	Pins    []string
	// ControlPlane is set if the machine gets an apiserver and a copy of the store; Key decrypts the files that it
	// needs for them.
	ControlPlane bool
	Key          invite.Key
	// NodeIP is the node's address; the zero Addr leaves the choice to the plan.
	NodeIP netip.Addr
}

// worker is a machine that joins a mesh.
type worker struct {
	*Mesh
	// found describes the requested mesh, once it has answered.
	found *discovery.Mesh
	// trusts are the authorities, in PEM, by which a machine that has joined before recognises its mesh; server is
	// the URL that the mesh now gives for itself, or empty. asked is set once the mesh was asked for both, or if
	// it must not be asked.
	trusts []byte
	server string
	asked  bool
}

// Join makes this machine a node of a mesh that another machine runs, or updates it, and waits until the node is
// ready. It resumes an interrupted run.
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
	// Everything that can be known beforehand is checked before anything is written.
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
	// The agent now uses its certificate, so the token must not stay on this machine.
	if err := os.Remove(m.workerFiles().BootstrapKubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the token: %w", err)
	}
	return w.report(ctx)
}

// workerFiles returns the files of the only node.
func (m *Mesh) workerFiles() plan.NodeLayout { return m.Layout.Node(m.State.Nodes[0].Name) }

// joined reports whether the agent has received a certificate.
func (m *Mesh) joined() bool {
	if len(m.State.Nodes) == 0 {
		return false
	}
	_, err := os.Stat(m.workerFiles().Kubeconfig())
	return err == nil
}

// settle is the settling for keel join.
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

// expectWorker returns an error if the machine is not just a worker, or if its containers need another cgroup
// driver.
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

// ownMesh returns the error that the machine has its own mesh.
func (w *worker) ownMesh() error {
	return fmt.Errorf("--data-dir: %s holds a mesh of this machine's own: end it (keel reset, keel down) and remove "+
		"the folder, or choose another one", w.Layout.Dir)
}

// find fetches the mesh's description, once; without an address it fetches nothing.
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

// adopt takes over the mesh's settings for nodes, unless the machine belongs to another mesh.
func (w *worker) adopt(options *Options) error {
	if err := w.sameMesh(w.trusts); err != nil {
		return err
	}
	w.server = w.found.Server
	w.adoptSettings(options)
	return nil
}

// sameMesh returns an error if the found mesh shares no authority with own, the authorities that the machine
// trusts; own is empty before it has joined.
func (w *worker) sameMesh(own []byte) error {
	if len(own) > 0 && !discovery.ShareAuthority(own, w.found.CA) {
		return fmt.Errorf("--data-dir: %s is of %s: keel reset ends it; remove the folder then", w.Layout.Dir,
			w.ofAnother())
	}
	return nil
}

// ofAnother describes the mesh to which the machine belongs, if that is not the requested one.
func (w *worker) ofAnother() string {
	if w.State.Worker() {
		return "a worker of another mesh, which was at " + w.State.Server
	}
	return "a machine of the control plane of another mesh"
}

// adoptSettings takes over the mesh's settings for nodes.
func (w *worker) adoptSettings(options *Options) {
	given := w.found.Settings
	w.State.VXLAN = given.VXLAN
	options.PodRange, options.ServiceRange = given.Pod, given.Service
	options.PodNetwork, options.ServiceProxy = given.PodNetwork, given.ServiceProxy
	options.DNS, options.Domain = given.DNS, given.Domain
}

// checkName prevents this machine from taking the name of a live node of the mesh.
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

// decideAddressTowards records the node's address, from which a worker reaches the mesh.
func (w *worker) decideAddressTowards(ctx context.Context, asked netip.Addr) error {
	server, err := url.Parse(w.State.Server)
	if err != nil {
		return fmt.Errorf("reading server of %s: %w", w.Layout.State(), err)
	}
	return w.decideNodeAddress(ctx, asked, server.Host)
}

// decideNodeAddress records the node's address, from which the machine reaches the apiserver at HOST:PORT. It also
// sets the machine's own apiserver to listen on every address; a worker has no apiserver.
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

// prepare makes the files and networks that the processes need at their start.
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
