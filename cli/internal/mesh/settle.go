package mesh

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// KeepNodes keeps the number of nodes; a new mesh gets one.
const KeepNodes = -1

// Options are the arguments of `keel up`, `keel init` or `keel join`.
type Options struct {
	DataDir string
	// Nodes is the wanted number of nodes, or KeepNodes.
	Nodes        int
	PodRange     plan.Range
	ServiceRange plan.Range
	BindAddress  netip.Addr
	Port         int
	Sample       bool
	// PodNetwork is plan.Routes, plan.VXLAN or plan.Others, ServiceProxy is plan.NFTables or plan.Others, DNS is
	// plan.CoreDNS, plan.NoDNS or an address, Domain is the cluster domain; empty keeps the recorded value.
	PodNetwork, ServiceProxy, DNS, Domain string
	// CgroupDriver is plan.Cgroupfs or plan.Systemd; empty keeps the recorded value.
	CgroupDriver string
	// Endpoint is the HOST:PORT at which other machines reach the control plane; empty keeps the recorded value.
	Endpoint string
	// NodeName is the name of the machine's own node; empty keeps the recorded name.
	NodeName string
	// Programs and Images are the folders with the programs and the image archives.
	Programs string
	Images   string
	LogLevel string
	// Join holds the further arguments of `keel join`; nil for the other commands.
	Join *Joining
	// Children is set if keel runs the mesh itself, without units.
	Children bool
}

// worker reports whether the machine is to run only a node of another machine's mesh.
func (o Options) worker() bool { return o.Join != nil && !o.Join.ControlPlane }

// decide decides the settings that later runs keep, in memory only. Running are the processes that hold their
// ports.
func (m *Mesh) decide(options Options, running []string) error {
	nodes := options.Nodes
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
		name := cmp.Or(options.NodeName, plan.NodeName(i))
		m.State.Nodes = append(m.State.Nodes, state.Node{Name: name})
	}
	return m.decidePorts(options, running)
}

// nodeCount returns the number of nodes. It never removes a node, because its Pods would be lost.
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

func (m *Mesh) decideRanges(options Options, nodes int) error {
	routes, err := host.Routes(m.Layout.LinkPrefix(), m.State.Ranges.Pod)
	if err != nil {
		return err
	}
	claimed, err := m.claimedByOthers()
	if err != nil {
		return err
	}
	in := plan.RangesInput{Pod: options.PodRange, Service: options.ServiceRange, Routes: routes, Claimed: claimed,
		IPv6: host.HasIPv6(), Nodes: nodes, PodNetwork: m.State.PodNetwork, Apart: m.State.Units,
		Given: m.State.Worker() || m.State.ControlPlane}
	if recorded := m.State.Ranges; recorded.Pod.IsValid() {
		if err := sameRange(plan.PodRangeFlag, recorded.Pod, in.Pod); err != nil {
			return err
		}
		if err := sameRange(plan.ServiceRangeFlag, recorded.Service, in.Service); err != nil {
			return err
		}
		in.Pod, in.Service, in.Between, in.Kept = recorded.Pod, recorded.Service, recorded.Nodes, true
	}
	ranges, err := plan.DecideRanges(in)
	if err != nil {
		return err
	}
	m.State.Ranges = ranges
	return nil
}

// claimedByOthers lists the ranges of the machine's other meshes: those that meshes of keel up have claimed in the
// kernel, and those that the units of a mesh of keel init start with at every boot.
func (m *Mesh) claimedByOthers() ([]netip.Prefix, error) {
	claimed, err := host.ClaimedByOthers(m.Layout.Number())
	if err != nil {
		return nil, err
	}
	units, err := m.units().Files(plan.UnitNames())
	if err != nil {
		return nil, err
	}
	for _, content := range units {
		if !plan.OwnsUnit(m.Layout, content) {
			claimed = append(claimed, plan.UnitRanges(content)...)
		}
	}
	return claimed, nil
}

func sameRange(flag string, recorded, asked plan.Range) error {
	if asked.IsValid() && asked != recorded {
		return fmt.Errorf("%s: this data directory has used %s from its start: leave the flag out", flag, recorded)
	}
	return nil
}

// decideAddresses records the address at which the apiserver listens and the one at which Pods reach it.
func (m *Mesh) decideAddresses(options Options, nodes int) error {
	if m.State.BindAddress == "" {
		m.State.BindAddress = options.BindAddress.String()
	}
	bind, err := netip.ParseAddr(m.State.BindAddress)
	if err != nil {
		return fmt.Errorf("reading bindAddress of %s: %w", m.Layout.State(), err)
	}
	in := plan.AdvertiseInput{Bind: bind, Between: m.State.Ranges.Nodes.IPv4, Nodes: nodes}
	in.Recorded, _ = netip.ParseAddr(m.State.Advertise) // a new mesh has none
	if in.Addresses, err = m.machineAddresses(); err != nil {
		return err
	}
	m.State.Advertise = plan.DecideAdvertise(in).String()
	return nil
}

// machineAddresses returns the machine's addresses except those in the Pod range, which come and go with Pods.
func (m *Mesh) machineAddresses() ([]netip.Addr, error) {
	addresses, err := m.kernelAddresses()
	return slices.DeleteFunc(addresses, m.State.Ranges.Pod.Contains), err
}

// kernelAddresses returns all addresses of the machine.
func (m *Mesh) kernelAddresses() ([]netip.Addr, error) {
	if m.Addresses != nil {
		return slices.Clone(m.Addresses), nil
	}
	return host.Addresses()
}

// addresses parses the addresses that decideAddresses has recorded.
func (m *Mesh) addresses() (bind, advertise netip.Addr, err error) {
	if bind, err = netip.ParseAddr(m.State.BindAddress); err != nil {
		return bind, advertise, fmt.Errorf("reading bindAddress of %s: %w", m.Layout.State(), err)
	}
	if advertise, err = netip.ParseAddr(m.State.Advertise); err != nil {
		return bind, advertise, fmt.Errorf("reading advertiseAddress of %s: %w", m.Layout.State(), err)
	}
	return bind, advertise, nil
}

func (m *Mesh) decidePorts(options Options, running []string) error {
	bind, _, err := m.addresses()
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, process := range running {
		held[process], held[plan.StatusPort(process)], held[plan.HealthPort(process)] = true, true, true
		held[plan.StreamPort(process)] = true
	}
	held[plan.StorePort] = held[plan.APIServer]
	needs := plan.PortNeeds(plan.NeedsInput{Layout: m.Layout, Nodes: m.State.NodeNames(), APIServer: options.Port,
		Expected: m.State.Units, Worker: m.State.Worker()})
	m.State.Ports, err = plan.DecidePorts(plan.PortsInput{
		Needs: needs, Remembered: m.State.Ports, Running: held,
		Free: func(node string, port int) bool {
			if node == "" {
				return host.PortFree(bind, port)
			}
			return host.PortFreeIn(m.Layout.NetNS(node), port)
		},
	})
	return err
}

// decideSettings decides the Pod network, the service proxy, DNS, the cluster domain and the cgroup driver. They
// never change afterwards, because Pods keep the settings with which they started.
func (m *Mesh) decideSettings(options Options) error {
	for _, setting := range []struct {
		flag, asked, otherwise string
		recorded               *string
	}{
		{"--pod-network", options.PodNetwork, plan.Routes, &m.State.PodNetwork},
		{"--service-proxy", options.ServiceProxy, plan.NFTables, &m.State.ServiceProxy},
		{"--dns", options.DNS, plan.CoreDNS, &m.State.DNS},
		{"--cluster-domain", options.Domain, plan.DefaultDomain, &m.State.Domain},
		{"--cgroup-driver", options.CgroupDriver, plan.Cgroupfs, &m.State.CgroupDriver},
	} {
		switch recorded := *setting.recorded; {
		case recorded != "" && setting.asked != "" && setting.asked != recorded:
			return fmt.Errorf("%s: this data directory has used %s from its start: leave the flag out", setting.flag,
				recorded)
		case recorded == "" && setting.asked != "":
			*setting.recorded = setting.asked
		case recorded == "":
			*setting.recorded = setting.otherwise
		}
	}
	return nil
}
