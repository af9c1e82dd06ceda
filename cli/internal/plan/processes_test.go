package plan

import (
	"encoding/json"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func input(nodes ...string) ProcessInput {
	layout := Layout{Dir: "/d"}
	ports, err := DecidePorts(PortsInput{Needs: PortNeeds(layout, len(nodes), 0), Free: func(int) bool { return true }})
	if err != nil {
		panic(err)
	}
	return ProcessInput{
		Layout: layout, Ports: ports, Nodes: nodes, Programs: "/bin", LogLevel: "info",
		Ranges:      Ranges{Pod: prefix("10.244.0.0/16"), Service: prefix("10.96.0.0/16")},
		BindAddress: netip.MustParseAddr("0.0.0.0"), Advertise: netip.MustParseAddr("192.0.2.7"),
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

func TestTheControlPlaneAloneHasNoContainers(t *testing.T) {
	for _, process := range input().flat() {
		if process.Socket != "" || strings.Contains(process.Program, "nodeagent") {
			t.Errorf("it has %s", process.Name)
		}
	}
}

func TestEveryProcessHasWhatItNeeds(t *testing.T) {
	in := input("node-1")
	certificates := map[string]bool{"ca": true, "service-account": true}
	for _, c := range DecidePKI(PKIInput{Service: in.Ranges.Service, Nodes: in.Nodes}) {
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
			case "--kubeconfig", "--node-name", "--pod-cidr", "--root-dir", "--pod-logs-dir", "--pod-addresses-dir",
				"--container-runtime-endpoint", "--cgroup-root", "--port", "--tls-cert-file", "--status-address":
				if other, ok := values[flag+value]; ok {
					t.Errorf("%s and %s share %s", node, other, arg)
				}
				values[flag+value] = node
			}
		}
	}
	if len(values) != 22 {
		t.Errorf("%d values seen, want 11 of each node", len(values))
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

// The users and groups are the contract of docs/architecture.md with the apiserver's roles.
func TestDecidePKI(t *testing.T) {
	got := map[string]string{}
	for _, c := range DecidePKI(PKIInput{
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}, HostName: "machine", Service: prefix("10.96.0.0/16"),
		Nodes: []string{"node-1"},
	}) {
		line := c.User + " " + strings.Join(c.Groups, ",")
		if c.Serves() {
			line += " serves"
			if c.File != StatusCertificate && !slices.Contains(c.Addresses, netip.MustParseAddr("192.0.2.7")) {
				t.Errorf("%s is not valid for the machine's address", c.File)
			}
		}
		if c.File == "apiserver" && (!slices.Contains(c.Addresses, netip.MustParseAddr("10.96.0.1")) ||
			!slices.Contains(c.Hosts, "kubernetes.default.svc")) {
			t.Errorf("the apiserver's is not valid for its Service: %v %v", c.Addresses, c.Hosts)
		}
		got[c.File] = line
	}
	want := map[string]string{
		"apiserver":                  "keelson-apiserver  serves",
		"status":                     "keelson-status  serves",
		"admin":                      "kubernetes-admin system:masters",
		"apiserver-nodeagent-client": "system:keelson:apiserver ",
		"scheduler":                  "system:kube-scheduler ",
		"workload-controllers":       "system:keelson:workload-controllers ",
		"podgc":                      "system:keelson:podgc ",
		"node-1":                     "system:node:node-1 system:nodes",
		"node-1-serving":             "system:node:node-1  serves",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestDueForRenewal(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := begin.Add(30 * 24 * time.Hour)
	for day, want := range map[int]bool{-1: true, 0: false, 19: false, 20: true, 31: true} {
		if got := DueForRenewal(begin, end, begin.AddDate(0, 0, day)); got != want {
			t.Errorf("day %d of 30: %t", day, got)
		}
	}
}

func TestContainerdConfigStaysInItsFolder(t *testing.T) {
	node := Layout{Dir: "/d"}.Node("node-1")
	config := ContainerdConfig(ContainerdInput{Node: node, Programs: "/p", SysResource: true})
	for _, want := range []string{
		"version = 3", `root = "/d/nodes/node-1/containerd/root"`, `state = "/d/nodes/node-1/containerd/state"`,
		`address = "/d/nodes/node-1/containerd.sock"`, `sandbox = "keelson.dev/pause:1"`, `BinaryName = "/p/runc"`,
		`Root = "/d/nodes/node-1/containerd/runc"`,
		`bin_dirs = ["/p/cni"]`, `conf_dir = "/d/nodes/node-1/cni/conf"`, "restrict_oom_score_adj = false",
	} {
		if !strings.Contains(config, want) {
			t.Errorf("no %s in\n%s", want, config)
		}
	}
	for line := range strings.Lines(config) {
		if _, value, ok := strings.Cut(line, `= "/`); ok && !strings.HasPrefix(value, "d/") &&
			!strings.HasPrefix(value, "p/") {
			t.Errorf("outside of the node's folder: %s", line)
		}
	}
	without := ContainerdConfig(ContainerdInput{Node: node, Programs: "/p"})
	if !strings.Contains(without, "restrict_oom_score_adj = true") {
		t.Error("without the capability every sandbox would fail")
	}
}

func TestCNIConfig(t *testing.T) {
	text, err := CNIConfig(CNIInput{Node: Layout{Dir: "/d"}.Node("node-2"), Bridge: "keelabc-2",
		Range: prefix("10.244.1.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Name    string
		Plugins []struct {
			Type, Bridge string
			IPAM         struct {
				DataDir string
				Ranges  [][]struct{ Subnet, Gateway string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	bridge := config.Plugins[0]
	if config.Name != "keelabc-2" || bridge.Type != "bridge" || bridge.Bridge != "keelabc-2" ||
		bridge.IPAM.DataDir != "/d/nodes/node-2/cni/addresses" || bridge.IPAM.Ranges[0][0].Subnet != "10.244.1.0/24" ||
		bridge.IPAM.Ranges[0][0].Gateway != "10.244.1.1" {
		t.Errorf("got %s", text)
	}
}

func TestImagesDue(t *testing.T) {
	got := ImagesDue([]string{"a", "b", "c"}, map[string]string{"a": "1", "b": "2", "c": "3"},
		map[string]string{"a": "1", "b": "old"})
	if !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("got %v", got)
	}
}

func TestMountsBelow(t *testing.T) {
	table := "22 1 0:1 / / rw - ext4 x rw\n" +
		"30 22 0:2 / /d/nodes/n/a rw - tmpfs x rw\n" +
		"31 30 0:3 / /d/nodes/n/a/with\\040space rw - tmpfs x rw\n" +
		"32 22 0:4 / /d/nodes-of-another/a rw - tmpfs x rw\n" +
		"33 22 0:5 / /d/nodes rw - tmpfs x rw\nshort line\n"
	want := []string{"/d/nodes/n/a/with space", "/d/nodes/n/a"}
	if got := MountsBelow(table, "/d/nodes"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestLayout(t *testing.T) {
	a, b := Layout{Dir: "/a"}, Layout{Dir: "/b"}
	if a.ID() == b.ID() || a.CgroupRoot() == b.CgroupRoot() || a.NetworkTable() == b.NetworkTable() {
		t.Error("two meshes share a name of the kernel's")
	}
	if name := a.BridgeName(98); len(name) > 15 {
		t.Errorf("%s is too long for the kernel", name)
	}
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	long := Layout{Dir: "/" + strings.Repeat("x", 80)}
	err := long.Validate()
	if err == nil || !strings.Contains(err.Error(), "too long for the sockets") {
		t.Fatalf("got %v", err)
	}
	if err := (Layout{Dir: long.Dir[:70]}).Validate(); err != nil {
		t.Errorf("the length that the message allows is refused: %v", err)
	}
}
