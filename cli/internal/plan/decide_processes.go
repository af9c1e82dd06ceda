package plan

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names of the processes of the control plane, which are also the names of the services' folders.
const (
	APIServer           = "apiserver"
	Scheduler           = "scheduler"
	WorkloadControllers = "workload-controllers"
	PodGC               = "podgc"
)

// controlPlane is in start order: the other processes need the apiserver.
var controlPlane = []string{APIServer, Scheduler, WorkloadControllers, PodGC}

const (
	nodeagentPrefix  = "nodeagent-"
	containerdPrefix = "containerd-"
	loopbackHost     = "127.0.0.1"
	podRangeFlag     = "--cluster-cidr"
	serviceRangeFlag = "--service-cluster-ip-range"
	logLevelFlag     = "--log-level"
)

// NodeagentProcess returns the process name of a node's agent.
func NodeagentProcess(node string) string { return nodeagentPrefix + node }

// ContainerdProcess returns the process name of a node's containerd.
func ContainerdProcess(node string) string { return containerdPrefix + node }

// NodeOfAgent returns the node of a nodeagent's process name.
func NodeOfAgent(process string) (string, bool) { return strings.CutPrefix(process, nodeagentPrefix) }

// NodeOfContainerd returns the node of a containerd's process name.
func NodeOfContainerd(process string) (string, bool) {
	return strings.CutPrefix(process, containerdPrefix)
}

// Process is one process of the mesh.
type Process struct {
	Name string
	// Program is a file name in the programs folder.
	Program string
	Args    []string
	// ReadyURL answers 200 once the process is ready; containerd has Socket instead.
	ReadyURL string
	Socket   string
	// NetNS, UTSNS and MountNS are the files of its namespaces; empty for the machine's own.
	NetNS, UTSNS, MountNS string
}

// ProcessInput holds what the processes' arguments depend on.
type ProcessInput struct {
	Layout Layout
	Ranges Ranges
	Ports  map[string]int
	Nodes  []string
	// Server is the apiserver's URL on a worker, which only runs one node of another machine's mesh; VXLAN is then
	// the VXLAN ID of the mesh's network.
	Server string
	// VXLAN is the VXLAN ID of a mesh that this machine has joined.
	VXLAN int
	// StorePeers are the URLs of the store on other machines at the time this machine joined them.
	StorePeers []string
	// Etcd is the etcd cluster in which the mesh has its store; nil means the embedded store.
	Etcd *Etcd
	// Encrypted is set if the machine has the mesh's encryption configuration for the store.
	Encrypted bool
	// BindAddress is the address at which the apiserver listens, Advertise the one at which Pods reach the
	// machine.
	BindAddress netip.Addr
	Advertise   netip.Addr
	// PodNetwork is Routes, VXLAN or Others, ServiceProxy is NFTables or Others.
	PodNetwork, ServiceProxy string
	// DNS is the address of the DNS server, if there is one; Domain is the cluster domain.
	DNS    netip.Addr
	Domain string
	// Programs is the programs folder.
	Programs string
	// LogLevel is passed on to the processes.
	LogLevel string
	// SharedDisk is set if programs outside the mesh fill and clear the machine's disk.
	SharedDisk bool
	// Hosts is set if each node has its own host name and mounts, separate from the machine's.
	Hosts bool
}

// sharedDisk keeps a node's Pods and images until only 1% of the disk is free, since a developer's disk may be
// rather full. The memory threshold is the default.
var sharedDisk = []string{
	"--eviction-hard=memory.available<100Mi,nodefs.available<1%,imagefs.available<1%",
	"--image-gc-high-threshold=100",
}

// DecideProcesses lists the mesh's processes in start order; each tier needs only the tiers before it.
func DecideProcesses(in ProcessInput) (tiers [][]Process) {
	var first, rest []Process
	if !in.worker() {
		first = append(first, in.apiserver())
		for _, daemon := range controlPlane[1:] {
			rest = append(rest, in.client(daemon))
		}
	}
	for i, node := range in.Nodes {
		first = append(first, in.inside(node, i, in.containerd(node)))
		rest = append(rest, in.inside(node, i, in.nodeagent(node, i)))
	}
	return [][]Process{first, rest}
}

// ServerURL returns the URL at which this machine's clients reach the apiserver.
func (in ProcessInput) ServerURL() string {
	if in.worker() {
		return in.Server
	}
	host := in.BindAddress
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return "https://" + netip.AddrPortFrom(host, uint16(in.Ports[APIServer])).String()
}

// NodeServerURL returns the URL at which the node at an index reaches the apiserver.
func (in ProcessInput) NodeServerURL(index int) string {
	if index == 0 {
		return in.ServerURL()
	}
	host := in.BindAddress
	if host.IsUnspecified() {
		host = FirstAddress(in.Ranges.Nodes.IPv4)
	}
	return "https://" + netip.AddrPortFrom(host, uint16(in.Ports[APIServer])).String()
}

// nodeAddress returns the address of the node at an index: the first node is the machine itself.
func (in ProcessInput) nodeAddress(index int) netip.Addr {
	if index == 0 {
		return in.Advertise
	}
	return NodeAddress(in.Ranges.Nodes.IPv4, index)
}

// nodeIPs returns the addresses of the node at an index, one for each family of the mesh. The IPv6 address is
// always in the network between the nodes, also for the machine: the other nodes could not reach its other IPv6
// addresses.
func (in ProcessInput) nodeIPs(index int) string {
	addresses := in.nodeAddress(index).String()
	if in.Ranges.Nodes.Dual() {
		addresses += "," + NodeAddress(in.Ranges.Nodes.IPv6, index).String()
	}
	return addresses
}

// inside puts a process into the namespaces of the node at an index: the first node has the machine's network.
func (in ProcessInput) inside(node string, index int, process Process) Process {
	if index > 0 {
		process.NetNS = in.Layout.NetNS(node)
	}
	if in.Hosts {
		process.UTSNS, process.MountNS = in.Layout.UTSNS(node), in.Layout.MountNS(node)
	}
	return process
}

// StatusAddress returns the address at which a process serves its status.
func (in ProcessInput) StatusAddress(process string) string {
	address := netip.MustParseAddr(loopbackHost)
	if node, ok := NodeOfAgent(process); ok {
		if index := slices.Index(in.Nodes, node); index > 0 {
			address = in.nodeAddress(index)
		}
	}
	return netip.AddrPortFrom(address, uint16(in.Ports[StatusPort(process)])).String()
}

// StreamAddress returns the address at which a node's containerd serves streams, which the node's agent passes on.
// The plan chooses the port, so that the agent can keep Pods from using it.
func (in ProcessInput) StreamAddress(node string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(loopbackHost), uint16(in.Ports[StreamPort(ContainerdProcess(node))]))
}

func (in ProcessInput) common(process string) []string {
	args := []string{logLevelFlag + "=" + in.LogLevel, "--status-address=" + in.StatusAddress(process)}
	if !in.worker() { // a worker has no authority that could sign one
		args = append(args,
			"--status-cert-file="+in.Layout.PKI(StatusCertificate+".crt"),
			"--status-key-file="+in.Layout.PKI(StatusCertificate+".key"))
	}
	return append(args, "--status-client-ca-file="+in.Layout.PKI("ca.crt"), "--profiling")
}

func (in ProcessInput) apiserver() Process {
	args := append(in.common(APIServer),
		"--data-dir="+in.Layout.APIServer(),
		"--bind-address="+in.BindAddress.String(),
		"--secure-port="+strconv.Itoa(in.Ports[APIServer]),
		"--advertise-address="+in.Advertise.String(),
		"--tls-cert-file="+in.Layout.PKI(apiserverCertificate+".crt"),
		"--tls-private-key-file="+in.Layout.PKI(apiserverCertificate+".key"),
		"--client-ca-file="+in.Layout.PKI("ca.crt"),
		"--enable-bootstrap-token-auth",
		"--service-account-signing-key-file="+in.Layout.PKI("service-account.key"),
		serviceRangeFlag+"="+in.Ranges.Service.String(),
		"--nodeagent-client-certificate="+in.Layout.PKI(APIServerToNodeagent+".crt"),
		"--nodeagent-client-key="+in.Layout.PKI(APIServerToNodeagent+".key"),
		"--nodeagent-certificate-authority="+in.Layout.PKI("ca.crt"),
	)
	args = append(args, in.storeFlags()...)
	return Process{Name: APIServer, Program: "keelson-apiserver", Args: args, ReadyURL: in.ServerURL() + "/readyz"}
}

// client returns the process of a daemon that starts the mesh and leaves its Leases to copies that run in the
// mesh.
func (in ProcessInput) client(daemon string) Process {
	args := append(in.common(daemon), "--kubeconfig="+in.Layout.Kubeconfig(daemon), "--fallback")
	if daemon == WorkloadControllers {
		ca := in.Layout.PKI("ca.crt")
		args = append(args, "--root-ca-file="+ca, podRangeFlag+"="+in.Ranges.Pod.String(),
			"--cluster-signing-cert-file="+ca, "--cluster-signing-key-file="+in.Layout.PKI("ca.key"))
	}
	return Process{Name: daemon, Program: "keelson-" + daemon, Args: args, ReadyURL: "https://" +
		in.StatusAddress(daemon) + "/readyz"}
}

func (in ProcessInput) nodeagent(node string, index int) Process {
	name, files, address := NodeagentProcess(node), in.Layout.Node(node), in.nodeAddress(index).String()
	health := netip.AddrPortFrom(in.nodeAddress(index), uint16(in.Ports[HealthPort(name)]))
	args := append(in.common(name),
		"--kubeconfig="+in.agentKubeconfig(node),
		"--node-name="+node,
		"--node-ip="+in.nodeIPs(index),
		"--pod-network="+in.PodNetwork,
		"--vxlan-id="+strconv.Itoa(in.vxlan()),
		podRangeFlag+"="+in.Ranges.Pod.String(),
		serviceRangeFlag+"="+in.Ranges.Service.String(),
		"--kept-ports="+in.keptPorts(index),
		"--cni-config-dir="+files.CNI("conf"),
		"--pod-bridge="+in.Layout.BridgeName(index),
		"--host-port-table="+in.Layout.PortTable(),
		"--root-dir="+files.Agent(),
		"--pod-logs-dir="+files.PodLogs(),
		"--pod-addresses-dir="+files.CNI("addresses"),
		"--container-runtime-endpoint=unix://"+files.Socket(),
		"--cgroup-root="+files.CgroupRoot(),
		"--service-proxy="+in.ServiceProxy,
		"--service-proxy-table="+in.Layout.ServiceTable(node),
		"--service-proxy-health-address="+health.String(),
		"--bind-address="+address,
		"--port="+strconv.Itoa(in.Ports[name]),
	)
	args = append(args, in.agentCertificates(node)...)
	args = append(args,
		"--client-ca-file="+in.Layout.PKI("ca.crt"),
		"--cluster-domain="+in.Domain,
	)
	if in.DNS.IsValid() {
		args = append(args, "--cluster-dns="+in.DNS.String())
	}
	if in.SharedDisk {
		args = append(args, sharedDisk...)
	}
	return Process{Name: name, Program: "keelson-nodeagent", Args: args, ReadyURL: "https://" + in.StatusAddress(name) +
		"/readyz"}
}

// keptPorts returns the ports on a node's machine at which processes other than its agent serve requests, and the
// status ports of all of them including the agent. The agent knows its remaining ports itself.
func (in ProcessInput) keptPorts(index int) string {
	var kept []string
	keep := func(address netip.AddrPort, keeper string) {
		kept = append(kept, address.String()+"/tcp="+keeper)
	}
	node := in.Nodes[index]
	processes := []string{NodeagentProcess(node)}
	if index == 0 && !in.worker() {
		keep(netip.AddrPortFrom(in.BindAddress, uint16(in.Ports[APIServer])), APIServer)
		if in.sharesStore() {
			keep(in.storeAddress(), StorePort)
		}
		processes = append(slices.Clone(controlPlane), processes...)
	}
	for _, process := range processes {
		if address, err := netip.ParseAddrPort(in.StatusAddress(process)); err == nil {
			keep(address, StatusPort(process))
		}
	}
	keep(in.StreamAddress(node), StreamPort(ContainerdProcess(node)))
	return strings.Join(kept, ",")
}

func (in ProcessInput) containerd(node string) Process {
	files := in.Layout.Node(node)
	return Process{
		Name: ContainerdProcess(node), Program: "containerd",
		Args:   []string{"--config", files.RuntimeConfig(), "--log-level", "warn"},
		Socket: files.Socket(),
	}
}

// ProgramPath returns the path of a process's program.
func (in ProcessInput) ProgramPath(p Process) string { return filepath.Join(in.Programs, p.Program) }
