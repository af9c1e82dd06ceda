package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func workerInput() ProcessInput {
	in := machineInput()
	in.Server, in.VXLAN, in.Ports = "https://192.0.2.1:6443", 4711, map[string]int{}
	for i, need := range PortNeeds(NeedsInput{Layout: in.Layout, Nodes: in.Nodes, Expected: true, Worker: true}) {
		in.Ports[need.Name] = 20000 + i
	}
	return in
}

func TestUnitsOfAWorker(t *testing.T) {
	in := workerInput()
	names := golden(t, in, "worker")
	for _, unit := range slices.Concat(DecideUnits(in, sumsOf(in))...) {
		// A file that the agent writes itself must not restart it.
		for _, file := range in.FilesAtStart(unit.Process) {
			if file != in.Layout.PKI("ca.crt") && file != in.Layout.Node("vm-1").RuntimeConfig() {
				t.Errorf("%s starts anew with %s", unit.Name, file)
			}
		}
	}
	if want := []string{"keelson-containerd.service", "keelson-nodeagent.service"}; !slices.Equal(names, want) {
		t.Errorf("the units are %v", names)
	}
}

// A worker has no key of the mesh: none of its processes names one.
func TestAWorkerNamesNoKeys(t *testing.T) {
	in := workerInput()
	for _, process := range slices.Concat(DecideProcesses(in)...) {
		for _, arg := range process.Args {
			if strings.HasSuffix(arg, ".key") || strings.Contains(arg, "apiserver=") {
				t.Errorf("%s: %s", process.Name, arg)
			}
		}
	}
	for _, need := range PortNeeds(NeedsInput{Layout: in.Layout, Nodes: in.Nodes, Worker: true}) {
		if _, agent := NodeOfAgent(need.Name); !agent && !strings.HasPrefix(need.Name, containerdPrefix) {
			t.Errorf("a worker needs the port %s", need.Name)
		}
	}
}

func TestDecideNodeAddress(t *testing.T) {
	own, second, other := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("198.51.100.2"),
		netip.MustParseAddr("203.0.113.9")
	loopback, none := netip.MustParseAddr("127.0.0.1"), netip.Addr{}
	for name, row := range map[string]struct {
		asked, recorded, source, want netip.Addr
		says                          string
	}{
		"the one towards the apiserver":      {none, none, second, second, ""},
		"that of an earlier run":             {none, own, second, own, ""},
		"one that the machine has lost":      {none, other, second, second, ""},
		"the one asked for":                  {second, own, none, second, ""},
		"one asked for that is not its own":  {other, own, own, none, "--node-ip: this machine does not have 203"},
		"the apiserver on the machine alone": {none, none, loopback, none, "reaches the apiserver from 127.0.0.1"},
	} {
		got, err := DecideNodeAddress(NodeAddressInput{Asked: row.asked, Recorded: row.recorded, Source: row.source,
			Addresses: []netip.Addr{own, second}})
		if (err == nil) != (row.says == "") || err == nil && got != row.want ||
			err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestNodeSettings(t *testing.T) {
	in := NodeSettings{Pod: machineInput().Ranges.Pod, Service: machineInput().Ranges.Service, PodNetwork: VXLAN,
		ServiceProxy: Others, DNS: "192.0.2.53", Domain: "mesh.local", VXLAN: 1}
	text, err := in.Text()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseNodeSettings(text)
	if got.Version != nodeSettingsVersion {
		t.Errorf("it has version %d", got.Version)
	}
	if got.Version = 0; err != nil || got != in {
		t.Errorf("got %+v, %v", got, err)
	}
	for from, to := range map[string]string{`"version":1`: `"version":2`, `"vxlan":1`: `"vxlan":0`,
		`"pods":"` + in.Pod.String() + `"`: `"pods":""`, `"mesh.local"`: `""`, `"vxlan","service`: `"bridge","service`,
		`"192.0.2.53"`: `"127.0.0.1"`, `"none"`: `"iptables"`, `{`: `[`} {
		if !strings.Contains(text, from) {
			t.Fatalf("%s is not in %s", from, text)
		}
		if got, err := ParseNodeSettings(strings.Replace(text, from, to, 1)); err == nil {
			t.Errorf("%s in place of %s is taken for %+v", to, from, got)
		}
	}
}

// If the machine uses a range of the mesh for something else, no flag can change the range.
func TestRangesThatTheMeshHasGiven(t *testing.T) {
	given := machineInput().Ranges
	in := RangesInput{Pod: given.Pod, Service: given.Service, Apart: true, Given: true, Nodes: 1}
	if got, err := DecideRanges(in); err != nil || got.Pod != given.Pod || got.Service != given.Service {
		t.Errorf("got %v, %v", got, err)
	}
	for what, taken := range map[string]netip.Prefix{"Pods": given.Pod.IPv4, "Services": given.Service.IPv4} {
		in.Routes = []netip.Prefix{taken}
		_, err := DecideRanges(in)
		if want := "the mesh has " + taken.String() + " for " + what + ", which overlaps"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
