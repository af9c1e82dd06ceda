package plan

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"keelson.dev/kit/keptport"
)

func input(nodes ...string) ProcessInput {
	layout := Layout{Dir: "/d"}
	needs := PortNeeds(NeedsInput{Layout: layout, Nodes: nodes})
	ports, err := DecidePorts(PortsInput{Needs: needs, Free: func(string, int) bool { return true }})
	if err != nil {
		panic(err)
	}
	return ProcessInput{
		Layout: layout, Ports: ports, Nodes: nodes, Programs: "/bin", LogLevel: "info",
		Ranges: Ranges{Pod: ranged("10.244.0.0/16"), Service: ranged("10.96.0.0/16"),
			Nodes: ranged("10.241.0.0/24")},
		BindAddress: netip.MustParseAddr("0.0.0.0"), Advertise: netip.MustParseAddr("192.0.2.7"),
		PodNetwork: VXLAN, ServiceProxy: NFTables,
	}
}

func TestProcessesStandInTheirOrder(t *testing.T) {
	var names [][]string
	for _, tier := range DecideProcesses(input("node-1", "node-2")) {
		var tierNames []string
		for _, process := range tier {
			tierNames = append(tierNames, process.Name)
		}
		names = append(names, tierNames)
	}
	want := [][]string{
		{"apiserver", "containerd-node-1", "containerd-node-2"},
		{"scheduler", "workload-controllers", "podgc", "nodeagent-node-1", "nodeagent-node-2"},
	}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("got %v", names)
	}
}

// In a dual-stack mesh every daemon gets both families and each node its addresses of both; otherwise IPv4 only.
func TestFamilies(t *testing.T) {
	both := input("node-1", "node-2")
	both.Ranges = Ranges{Pod: ranged("10.244.0.0/16,fd00:1::/56"), Service: ranged("10.96.0.0/16,fd00:2::/112"),
		Nodes: ranged("10.241.0.0/24,fd00:3::/64")}
	for want, in := range map[[4]string]ProcessInput{
		{"10.244.0.0/16", "10.96.0.0/16", "192.0.2.7", "10.241.0.2"}: input("node-1", "node-2"),
		{
			"10.244.0.0/16,fd00:1::/56", "10.96.0.0/16,fd00:2::/112", "192.0.2.7,fd00:3::1", "10.241.0.2,fd00:3::2",
		}: both,
	} {
		got := map[string]map[string]string{}
		for _, process := range in.flat() {
			got[process.Name] = flagsOf(process)
		}
		for process, flags := range map[string]map[string]string{
			APIServer:                  {serviceRangeFlag: want[1]},
			WorkloadControllers:        {podRangeFlag: want[0]},
			NodeagentProcess("node-1"): {podRangeFlag: want[0], serviceRangeFlag: want[1], "--node-ip": want[2]},
			NodeagentProcess("node-2"): {podRangeFlag: want[0], serviceRangeFlag: want[1], "--node-ip": want[3]},
		} {
			for flag, value := range flags {
				if got[process][flag] != value {
					t.Errorf("%s has %s=%s, want %s", process, flag, got[process][flag], value)
				}
			}
		}
	}
}

func TestTheControlPlaneAloneHasNoContainers(t *testing.T) {
	for _, process := range input().flat() {
		if process.Socket != "" || strings.Contains(process.Program, "nodeagent") {
			t.Errorf("it has %s", process.Name)
		}
	}
}

// On a developer's machine no Pod is evicted and no image removed before only 1% of the disk is free; elsewhere
// the agent's own thresholds apply.
func TestASharedDisk(t *testing.T) {
	for _, shared := range []bool{false, true} {
		in := input("node-1")
		in.SharedDisk = shared
		for _, process := range in.flat() {
			args := strings.Join(process.Args, " ")
			want := shared && process.Program == "keelson-nodeagent"
			if strings.Contains(args, "nodefs.available<1%,imagefs.available<1%") != want ||
				strings.Contains(args, "--image-gc-high-threshold=100") != want {
				t.Errorf("shared: %t: %s has %s", shared, process.Name, args)
			}
		}
	}
}

func TestEveryProcessHasWhatItNeeds(t *testing.T) {
	in := input("node-1")
	certificates := map[string]bool{"ca": true, "service-account": true}
	for _, c := range DecidePKI(PKIInput{Service: in.Ranges.Service.IPv4, Nodes: in.Nodes}) {
		certificates[c.File] = true
	}
	for _, process := range in.flat() {
		if (process.ReadyURL == "") == (process.Socket == "") {
			t.Errorf("%s must be asked over either its URL or its socket", process.Name)
		}
		for _, arg := range process.Args {
			_, value, _ := strings.Cut(arg, "=")
			switch {
			case strings.HasPrefix(value, "/d/pki/"):
				file := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(value), ".crt"), ".key")
				if !certificates[file] {
					t.Errorf("%s: nobody makes %s", process.Name, value)
				}
			case strings.HasSuffix(value, ".kubeconfig"):
				if file := strings.TrimSuffix(filepath.Base(value), ".kubeconfig"); !certificates[file] {
					t.Errorf("%s: nobody makes %s", process.Name, value)
				}
			}
		}
	}
}

func TestTwoNodesShareNothing(t *testing.T) {
	values := map[string]string{}
	for _, process := range input("node-1", "node-2").flat() {
		node, isAgent := NodeOfAgent(process.Name)
		if !isAgent {
			continue
		}
		for _, arg := range process.Args {
			flag, value, _ := strings.Cut(arg, "=")
			switch flag {
			case "--kubeconfig", "--node-name", "--pod-bridge", "--cni-config-dir", "--node-ip", "--root-dir",
				"--pod-logs-dir", "--pod-addresses-dir", "--container-runtime-endpoint", "--cgroup-root",
				"--service-proxy-table", "--service-proxy-health-address", "--bind-address", "--tls-cert-file",
				"--status-address":
				if other, ok := values[flag+value]; ok {
					t.Errorf("%s and %s share %s", node, other, arg)
				}
				values[flag+value] = node
			}
		}
	}
	if len(values) != 30 {
		t.Errorf("%d values seen, want 15 of each node", len(values))
	}
}

// No Pod and no Service gets a port at which a process of its node's machine serves: the agent's flags list all
// ports that it does not know itself.
func TestAgentsKeepThePortsOfTheirMachine(t *testing.T) {
	in := input("node-1", "node-2")
	processes := in.flat()
	for agent, netns := range map[string]string{"nodeagent-node-1": "", "nodeagent-node-2": "/d/netns/node-2"} {
		var kept []keptport.Port
		want := map[string]string{}
		for _, process := range processes {
			args := flagsOf(process)
			if process.Name == agent {
				for _, text := range strings.Split(args["--kept-ports"], ",") {
					p, err := keptport.Parse(text)
					if err != nil {
						t.Fatalf("%s: %v", agent, err)
					}
					kept = append(kept, p)
				}
			}
			if status := args["--status-address"]; status != "" && process.NetNS == netns {
				want[status] = process.Name
			}
			if node, ok := NodeOfContainerd(process.Name); ok && process.NetNS == netns {
				want[in.StreamAddress(node).String()] = process.Name
			}
			if port := args["--secure-port"]; port != "" && netns == "" {
				want[args["--bind-address"]+":"+port], want["192.0.2.7:"+port] = process.Name, process.Name
			}
		}
		for address, process := range want {
			at := netip.MustParseAddrPort(address)
			if !slices.ContainsFunc(kept, func(p keptport.Port) bool {
				return p.Has(at.Addr(), keptport.TCP, at.Port())
			}) {
				t.Errorf("%s does not keep %s of %s", agent, address, process)
			}
		}
	}
}

// A process serves its status on loopback, or within the machine, to clients with a certificate of the mesh.
func TestStatusIsNotForEverybody(t *testing.T) {
	statuses := map[string]bool{}
	for _, process := range input("node-1", "node-2").flat() {
		if process.Program == "containerd" {
			continue
		}
		args := flagsOf(process)
		host, port, _ := strings.Cut(args["--status-address"], ":")
		want := "127.0.0.1"
		if process.NetNS != "" {
			want = "10.241.0.2" // its loopback is its own
		}
		if host != want || port == "0" || statuses[args["--status-address"]] {
			t.Errorf("%s answers at %s", process.Name, args["--status-address"])
		}
		statuses[args["--status-address"]] = true
		if args["--status-cert-file"] != "/d/pki/status.crt" || args["--status-key-file"] != "/d/pki/status.key" ||
			args["--status-client-ca-file"] != "/d/pki/ca.crt" || args["--log-level"] != "info" {
			t.Errorf("%s is started with %v", process.Name, process.Args)
		}
		if _, ok := args["--profiling"]; !ok {
			t.Errorf("%s has no profiles", process.Name)
		}
		want = "https://" + args["--status-address"] + "/readyz"
		if process.Name == "apiserver" {
			want = "https://127.0.0.1:6443/readyz"
		}
		if process.ReadyURL != want || process.Socket != "" {
			t.Errorf("%s is asked at %q and %q, want %s", process.Name, process.ReadyURL, process.Socket, want)
		}
	}
	if len(statuses) != 6 {
		t.Errorf("%d processes have a status, want 6", len(statuses))
	}
}

func flagsOf(p Process) map[string]string {
	flags := map[string]string{}
	for _, arg := range p.Args {
		flag, value, _ := strings.Cut(arg, "=")
		flags[flag] = value
	}
	return flags
}

// The first node is the machine itself; each further node has its own network namespace, from which it reaches the
// apiserver.
func TestFurtherNodesAreInNetworksOfTheirOwn(t *testing.T) {
	in := input("node-1", "node-2", "node-3")
	for _, process := range in.flat() {
		want := ""
		for _, node := range []string{"node-2", "node-3"} {
			if process.Name == ContainerdProcess(node) || process.Name == NodeagentProcess(node) {
				want = "/d/netns/" + node
			}
		}
		if process.NetNS != want {
			t.Errorf("%s is in the network %q, want %q", process.Name, process.NetNS, want)
		}
	}
	for index, want := range []string{"https://127.0.0.1:6443", "https://10.241.0.1:6443", "https://10.241.0.1:6443"} {
		if got := in.NodeServerURL(index); got != want {
			t.Errorf("node %d asks at %s, want %s", index+1, got, want)
		}
	}
	in.BindAddress = netip.MustParseAddr("192.0.2.7")
	if got := in.NodeServerURL(1); got != "https://192.0.2.7:6443" {
		t.Errorf("where the apiserver listens on one address alone, node 2 asks at %s", got)
	}
	pki := PKIInput{Service: in.Ranges.Service.IPv4, Nodes: in.Nodes, Between: in.Ranges.Nodes.IPv4}
	for _, c := range DecidePKI(pki) {
		for file, address := range map[string]string{"apiserver": "10.241.0.1", "node-2-serving": "10.241.0.2",
			"node-3-serving": "10.241.0.3", "status": "10.241.0.3"} {
			if valid := slices.Contains(c.Addresses, netip.MustParseAddr(address)); c.File == file && !valid {
				t.Errorf("%s is not valid for %s", file, address)
			}
		}
		if c.File == "node-2-serving" && slices.Contains(c.Addresses, netip.MustParseAddr("10.241.0.3")) {
			t.Error("node 2 may stand for node 3")
		}
	}
}

// The processes of a separate node see the node's host name and mounts; the control plane sees the machine's.
func TestNodesAreHostsOfTheirOwn(t *testing.T) {
	for _, hosts := range []bool{true, false} {
		in := input("node-1", "node-2")
		in.Hosts = hosts
		for _, process := range in.flat() {
			node, ok := NodeOfAgent(process.Name)
			if !ok {
				node, ok = NodeOfContainerd(process.Name)
			}
			uts, mounts := "", ""
			if ok && hosts {
				uts, mounts = "/d/hosts/"+node+".uts", "/d/hosts/"+node+".mnt"
			}
			if process.UTSNS != uts || process.MountNS != mounts {
				t.Errorf("hosts %t: %s is in %q and %q", hosts, process.Name, process.UTSNS, process.MountNS)
			}
		}
	}
}

// Each daemon has its own identity, and no file of another's.
func TestArguments(t *testing.T) {
	found := map[string]Process{}
	for _, process := range input("node-1", "node-2").flat() {
		found[process.Name] = process
	}
	node := "/d/nodes/node-2"
	for name, row := range map[string]struct {
		program string
		flags   map[string]string
	}{
		"apiserver": {"keelson-apiserver", map[string]string{"--data-dir": "/d/apiserver", "--bind-address": "0.0.0.0",
			"--secure-port": "6443", "--advertise-address": "192.0.2.7", "--tls-cert-file": "/d/pki/apiserver.crt",
			"--tls-private-key-file": "/d/pki/apiserver.key", "--client-ca-file": "/d/pki/ca.crt",
			"--service-account-signing-key-file": "/d/pki/service-account.key",
			"--service-cluster-ip-range":         "10.96.0.0/16",
			"--nodeagent-client-certificate":     "/d/pki/apiserver-nodeagent-client.crt",
			"--nodeagent-client-key":             "/d/pki/apiserver-nodeagent-client.key",
			"--nodeagent-certificate-authority":  "/d/pki/ca.crt", "--kubeconfig": ""}},
		"scheduler": {"keelson-scheduler", map[string]string{"--kubeconfig": "/d/kubeconfig/scheduler.kubeconfig",
			"--root-ca-file": "", "--cluster-signing-key-file": ""}},
		"workload-controllers": {"keelson-workload-controllers", map[string]string{
			"--kubeconfig":   "/d/kubeconfig/workload-controllers.kubeconfig",
			"--root-ca-file": "/d/pki/ca.crt", "--cluster-cidr": "10.244.0.0/16",
			"--cluster-signing-cert-file": "/d/pki/ca.crt", "--cluster-signing-key-file": "/d/pki/ca.key"}},
		"podgc": {"keelson-podgc", map[string]string{"--kubeconfig": "/d/kubeconfig/podgc.kubeconfig",
			"--root-ca-file": "", "--cluster-signing-key-file": ""}},
		"nodeagent-node-2": {"keelson-nodeagent", map[string]string{"--kubeconfig": "/d/kubeconfig/node-2.kubeconfig",
			"--node-name": "node-2", "--node-ip": "10.241.0.2", "--bind-address": "10.241.0.2", "--port": "10250",
			"--pod-network": "vxlan", "--service-proxy": "nftables",
			"--vxlan-id":     strconv.Itoa(Layout{Dir: "/d"}.Number()),
			"--cluster-cidr": "10.244.0.0/16", "--service-cluster-ip-range": "10.96.0.0/16",
			"--kept-ports": fmt.Sprintf("10.241.0.2:%d/tcp=nodeagent-node-2.status,"+
				"127.0.0.1:%d/tcp=containerd-node-2.stream", input("node-1", "node-2").Ports["nodeagent-node-2.status"],
				input("node-1", "node-2").Ports["containerd-node-2.stream"]), "--cni-config-dir": node + "/cni/conf",
			"--pod-bridge": Layout{Dir: "/d"}.BridgeName(1), "--host-port-table": Layout{Dir: "/d"}.PortTable(),
			"--root-dir": node + "/agent", "--pod-logs-dir": node + "/podlogs",
			"--pod-addresses-dir":            node + "/cni/addresses",
			"--container-runtime-endpoint":   "unix://" + node + "/containerd.sock",
			"--cgroup-root":                  Layout{Dir: "/d"}.CgroupRoot() + "/node-2",
			"--service-proxy-health-address": "10.241.0.2:10256",
			"--service-proxy-table":          Layout{Dir: "/d"}.NetworkTable() + "-services-node-2",
			"--tls-cert-file":                "/d/pki/node-2-serving.crt",
			"--tls-private-key-file":         "/d/pki/node-2-serving.key", "--client-ca-file": "/d/pki/ca.crt"}},
	} {
		process := found[name]
		if process.Program != row.program || input().ProgramPath(process) != "/bin/"+row.program {
			t.Errorf("%s is the program %s", name, process.Program)
		}
		got := flagsOf(process)
		for flag, want := range row.flags {
			if got[flag] != want {
				t.Errorf("%s: %s=%s, want %q", name, flag, got[flag], want)
			}
		}
	}
	runtime := found["containerd-node-2"]
	if want := []string{"--config", node + "/containerd/config.toml", "--log-level",
		"warn"}; !slices.Equal(runtime.Args,
		want) || runtime.Socket != node+"/containerd.sock" || runtime.Program != "containerd" {
		t.Errorf("containerd is %+v, want %v", runtime, want)
	}
}

func TestNamesOfNodesProcesses(t *testing.T) {
	for process, want := range map[string][2]string{
		NodeagentProcess("n"): {"n", ""}, ContainerdProcess("n"): {"", "n"}, "nodeagent": {"", ""},
		"containerd": {"", ""}, "scheduler": {"", ""}, "my-nodeagent-n": {"", ""}, "my-containerd-n": {"", ""},
	} {
		agents, isAgent := NodeOfAgent(process)
		runtimes, isRuntime := NodeOfContainerd(process)
		if isAgent != (want[0] != "") || isRuntime != (want[1] != "") || isAgent && agents != want[0] ||
			isRuntime && runtimes != want[1] {
			t.Errorf("%s is the agent of %q (%v) and the containerd of %q (%v), want %q", process, agents, isAgent,
				runtimes, isRuntime, want)
		}
	}
}

func TestServerURL(t *testing.T) {
	in := input()
	if got := in.ServerURL(); got != "https://127.0.0.1:6443" {
		t.Errorf("bound to every address: %s", got)
	}
	in.BindAddress = netip.MustParseAddr("192.0.2.7")
	if got := in.ServerURL(); got != "https://192.0.2.7:6443" {
		t.Errorf("bound to one: %s", got)
	}
}
