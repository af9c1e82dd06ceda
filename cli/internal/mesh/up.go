package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// KeepNodes leaves the number of nodes as it is; a new mesh gets one.
const KeepNodes = -1

// UpOptions are what `keel up` is asked for.
type UpOptions struct {
	DataDir string
	// Nodes is how many nodes there are to be, or KeepNodes.
	Nodes        int
	PodRange     netip.Prefix
	ServiceRange netip.Prefix
	BindAddress  netip.Addr
	Port         int
	Sample       bool
	// PodNetwork is plan.Routes or plan.VXLAN, DNS plan.CoreDNS, plan.NoDNS or an address, Domain that of the cluster's
	// names; empty keeps what there is.
	PodNetwork, DNS, Domain string
	// CgroupDriver is plan.Cgroupfs or plan.Systemd; empty keeps what there is.
	CgroupDriver string
	// Programs and Images are the folders of the programs and of the image archives.
	Programs string
	Images   string
	LogLevel string
	Timeout  time.Duration
}

// Up starts what is missing of the mesh and waits until all of it is ready. What was started stays when it fails.
func Up(ctx context.Context, m *Mesh, options UpOptions) error {
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if m.State, err = state.Load(m.Layout); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fresh := err != nil
	if options.Nodes, err = nodeCount(fresh, len(m.State.Nodes), options.Nodes); err != nil {
		return err
	}
	if err := checkPrograms(options); err != nil {
		return err
	}
	tiers, err := m.prepareAndStart(ctx, options)
	if err != nil {
		return err
	}
	if err := m.startTier(ctx, tiers[1], options); err != nil {
		return err
	}
	if old := m.outdated(); len(old) > 0 {
		m.say("    built anew since their start: %s (keel down and keel up renew them)", strings.Join(old, ", "))
	}
	return nil
}

// outdated lists the running processes whose program has been replaced since they were started.
func (m *Mesh) outdated() []string {
	var names []string
	for _, process := range m.State.Processes {
		if process.Outdated() {
			names = append(names, process.Name)
		}
	}
	return names
}

// prepareAndStart decides ranges, ports and certificates and starts the first tier. Other meshes of this machine wait
// meanwhile, because a port is only taken once its process listens.
func (m *Mesh) prepareAndStart(ctx context.Context, options UpOptions) ([][]plan.Process, error) {
	unlock, err := state.LockMachine()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := m.decide(options); err != nil {
		return nil, err
	}
	if err := m.step("preparing certificates and networks", func() error { return m.prepare(options) }); err != nil {
		return nil, err
	}
	input, err := m.processInput(options.Programs, options.LogLevel)
	if err != nil {
		return nil, err
	}
	tiers := plan.DecideProcesses(input)
	return tiers, m.startTier(ctx, tiers[0], options)
}

// decide settles what later runs keep, and records it before anything of it exists.
func (m *Mesh) decide(options UpOptions) error {
	nodes := options.Nodes
	if nodes > 0 && os.Geteuid() != 0 {
		return errors.New(
			"running containers needs root: run keel as root, or with --nodes 0 for the control plane alone")
	}
	if err := m.decideRanges(options, nodes); err != nil {
		return err
	}
	if err := m.decideAddresses(options, nodes); err != nil {
		return err
	}
	if err := m.decideSettings(options); err != nil {
		return err
	}
	for i := len(m.State.Nodes); i < nodes; i++ {
		m.State.Nodes = append(m.State.Nodes, state.Node{Name: plan.NodeName(i), Bridge: m.Layout.BridgeName(i)})
	}
	if err := m.decidePorts(options, nodes); err != nil {
		return err
	}
	return m.State.Save(m.Layout)
}

// nodeCount never takes a node away: its Pods would go with it.
func nodeCount(fresh bool, have, want int) (int, error) {
	switch {
	case want == KeepNodes && fresh:
		return 1, nil
	case want == KeepNodes:
		return have, nil
	case want < have:
		return 0, fmt.Errorf("--nodes: the mesh has %d nodes already, and up only adds some: give %d or more", have,
			have)
	}
	return want, nil
}

func (m *Mesh) decideRanges(options UpOptions, nodes int) error {
	bridges := []string{m.Layout.NodesBridge()}
	for _, n := range m.State.Nodes {
		bridges = append(bridges, n.Bridge)
	}
	routes, err := host.Routes(bridges, m.State.Ranges.Pod)
	if err != nil {
		return err
	}
	in := plan.RangesInput{Pod: options.PodRange, Service: options.ServiceRange, Routes: routes, Nodes: nodes}
	if recorded := m.State.Ranges; recorded.Pod.IsValid() {
		if err := sameRange("--pod-range", recorded.Pod, in.Pod); err != nil {
			return err
		}
		if err := sameRange("--service-range", recorded.Service, in.Service); err != nil {
			return err
		}
		in.Pod, in.Service, in.Between = recorded.Pod, recorded.Service, recorded.Nodes
	}
	m.State.Ranges, err = plan.DecideRanges(in)
	return err
}

func sameRange(flag string, recorded, asked netip.Prefix) error {
	if asked.IsValid() && asked != recorded {
		return fmt.Errorf("%s: this data directory has used %s from its start: leave the flag out", flag, recorded)
	}
	return nil
}

// decideAddresses records where the apiserver listens and what Pods reach it at.
func (m *Mesh) decideAddresses(options UpOptions, nodes int) error {
	if m.State.BindAddress == "" {
		m.State.BindAddress = options.BindAddress.String()
	}
	bind, err := netip.ParseAddr(m.State.BindAddress)
	if err != nil {
		return fmt.Errorf("reading bindAddress of %s: %w", m.Layout.State(), err)
	}
	in := plan.AdvertiseInput{Bind: bind, Between: m.State.Ranges.Nodes, Nodes: nodes}
	in.Recorded, _ = netip.ParseAddr(m.State.Advertise) // a new mesh has none
	if in.Addresses, err = host.Addresses(); err != nil {
		return err
	}
	m.State.Advertise = plan.DecideAdvertise(in).String()
	return nil
}

// addresses parses what decideAddresses has recorded.
func (m *Mesh) addresses() (bind, advertise netip.Addr, err error) {
	if bind, err = netip.ParseAddr(m.State.BindAddress); err != nil {
		return bind, advertise, fmt.Errorf("reading bindAddress of %s: %w", m.Layout.State(), err)
	}
	if advertise, err = netip.ParseAddr(m.State.Advertise); err != nil {
		return bind, advertise, fmt.Errorf("reading advertiseAddress of %s: %w", m.Layout.State(), err)
	}
	return bind, advertise, nil
}

func (m *Mesh) decidePorts(options UpOptions, nodes int) error {
	bind, _, err := m.addresses()
	if err != nil {
		return err
	}
	running := map[string]bool{}
	for _, process := range m.State.Processes {
		if process.Alive() {
			running[process.Name], running[plan.StatusPort(process.Name)] = true, true
			running[plan.HealthPort(process.Name)] = true
		}
	}
	m.State.Ports, err = plan.DecidePorts(plan.PortsInput{
		Needs: plan.PortNeeds(m.Layout, nodes, options.Port), Remembered: m.State.Ports, Running: running,
		Free: func(port int) bool { return host.PortFree(bind, port) },
	})
	return err
}

// prepare makes what the processes find on their start.
func (m *Mesh) prepare(options UpOptions) error {
	if err := m.preparePKI(); err != nil {
		return err
	}
	if len(m.State.Nodes) == 0 {
		return nil
	}
	return m.prepareNodes(options)
}

func (m *Mesh) preparePKI() error {
	addresses, err := host.Addresses()
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host's name: %w", err)
	}
	certificates := plan.DecidePKI(plan.PKIInput{
		Addresses: addresses, HostName: name, Service: m.State.Ranges.Service, Domain: m.State.Domain,
		Nodes: m.State.NodeNames(), Between: m.State.Ranges.Nodes,
	})
	if _, err := pki.Ensure(m.Layout, certificates, time.Now()); err != nil {
		return err
	}
	input, err := m.processInput("", "")
	if err != nil {
		return err
	}
	for _, certificate := range certificates {
		if certificate.Serves() || certificate.File == plan.APIServerToNodeagent {
			continue
		}
		server := input.ServerURL()
		if index := slices.Index(input.Nodes, certificate.File); index >= 0 {
			server = input.NodeServerURL(index)
		}
		if err := pki.EnsureKubeconfig(m.Layout, certificate.File, server); err != nil {
			return err
		}
	}
	return nil
}

// httpClient talks to the daemons; each answer comes over a connection of its own, so that a restart is seen at once.
func (m *Mesh) httpClient() (*http.Client, error) {
	config, err := m.TLSClient()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, nil
}

// checkPrograms says early what a half-built checkout lacks.
func checkPrograms(options UpOptions) error {
	programs := []string{"keelson-apiserver", "keelson-scheduler", "keelson-workload-controllers", "keelson-podgc"}
	if options.Nodes > 0 {
		programs = append(programs, "keelson-nodeagent", "containerd", "containerd-shim-runc-v2", "ctr", "runc",
			"cni/bridge", "cni/"+plan.HostPortPlugin)
	}
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(options.Programs, program)); err != nil {
			return fmt.Errorf("--programs: %s is missing in %s: build it with make build", program, options.Programs)
		}
	}
	return nil
}
