package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestDecidePorts(t *testing.T) {
	need := func(name string, first int) PortNeed { return PortNeed{Name: name, First: first} }
	for name, c := range map[string]struct {
		needs      []PortNeed
		remembered map[string]int
		running    map[string]bool
		taken      []int
		want       map[string]int
		wantError  string
	}{
		"all free": {needs: []PortNeed{need("a", 10), need("b", 20)}, want: map[string]int{"a": 10,
			"b": 20}},
		"the next one": {needs: []PortNeed{need("a", 10)}, taken: []int{10, 11},
			want: map[string]int{"a": 12}},
		"never one port for two": {needs: []PortNeed{need("a", 10), need("b", 10)}, want: map[string]int{"a": 10,
			"b": 11}},
		"remembered": {needs: []PortNeed{need("a", 10)}, remembered: map[string]int{"a": 99},
			want: map[string]int{"a": 99}},
		"another's memory is kept": {needs: []PortNeed{need("b", 10), need("a", 10)},
			remembered: map[string]int{"a": 10}, want: map[string]int{"a": 10, "b": 11}},
		"it runs on its own": {needs: []PortNeed{need("a", 10)}, remembered: map[string]int{"a": 10},
			running: map[string]bool{"a": true}, taken: []int{10}, want: map[string]int{"a": 10}},
		"remembered and taken": {needs: []PortNeed{need("a", 10)}, remembered: map[string]int{"a": 10},
			taken: []int{10}, wantError: "port 10, which this data directory has used for a, is taken"},
		"the user's": {needs: []PortNeed{{Name: "a", First: 10, Fixed: true}},
			want: map[string]int{"a": 10}},
		"the user's is taken": {needs: []PortNeed{{Name: "a", First: 10, Fixed: true}}, taken: []int{10},
			wantError: "--port: port 10 is taken"},
		"the user's again": {needs: []PortNeed{{Name: "a", First: 10, Fixed: true}},
			remembered: map[string]int{"a": 10}, want: map[string]int{"a": 10}},
		"the user's is remembered for another": {needs: []PortNeed{{Name: "a", First: 10, Fixed: true}},
			remembered: map[string]int{"b": 10}, wantError: "--port: port 10 is taken by another process"},
		"the user's was given out before": {needs: []PortNeed{need("b", 10), {Name: "a", First: 10, Fixed: true}},
			wantError: "--port: port 10 is taken by another process: end it or choose another port"},
		"the user's runs": {needs: []PortNeed{{Name: "a", First: 10, Fixed: true}},
			remembered: map[string]int{"a": 10}, running: map[string]bool{"a": true}, taken: []int{10},
			want: map[string]int{"a": 10}},
		"what runs is not what holds it": {needs: []PortNeed{need("a", 10)}, remembered: map[string]int{"a": 10},
			running: map[string]bool{"b": true}, taken: []int{10},
			wantError: "port 10, which this data directory has used for a, is taken by another process: end it first"},
		"what is remembered and not needed": {needs: []PortNeed{need("a", 10)},
			remembered: map[string]int{"gone": 10, "other": 11}, want: map[string]int{"a": 12}},
		"what is expected": {needs: []PortNeed{{Name: "a", First: 10, Expected: true}}, want: map[string]int{"a": 10}},
		"what is expected is taken": {needs: []PortNeed{{Name: "a", First: 10, Expected: true}}, taken: []int{10},
			wantError: "port 10, which a needs, is taken by another process: end it first"},
		"the apiserver's is taken": {needs: []PortNeed{{Name: "apiserver", First: 10, Expected: true}},
			taken:     []int{10},
			wantError: "port 10, which clients expect of an apiserver, is taken by another process: end it or choose"},
		"what is expected was another one": {needs: []PortNeed{{Name: "a", First: 10, Expected: true}},
			remembered: map[string]int{"a": 99}, want: map[string]int{"a": 99}},
		"each that is taken is named": {needs: []PortNeed{{Name: "a", First: 10, Expected: true},
			{Name: "b", First: 20, Expected: true}, {Name: "c", First: 30, Expected: true}}, taken: []int{10, 30},
			wantError: "port 10, which a needs, is taken by another process: end it first\nport 30, which c needs"},
		"each namespace has its own": {needs: []PortNeed{need("a", 10), {Name: "b", First: 10, Node: "n"},
			{Name: "c", First: 10, Node: "m"}}, taken: []int{10}, want: map[string]int{"a": 11, "b": 10, "c": 10}},
		"never one port for two of a namespace": {needs: []PortNeed{{Name: "b", First: 10, Node: "n"},
			{Name: "c", First: 10, Node: "n"}}, want: map[string]int{"b": 10, "c": 11}},
		"remembered in another namespace": {needs: []PortNeed{need("a", 10), {Name: "b", First: 10, Node: "n"}},
			remembered: map[string]int{"b": 10}, want: map[string]int{"a": 10, "b": 10}},
		"remembered, and taken on the machine alone": {needs: []PortNeed{{Name: "b", First: 10, Node: "n"}},
			remembered: map[string]int{"b": 10}, taken: []int{10}, want: map[string]int{"b": 10}},
		"the user changes their mind": {needs: []PortNeed{{Name: "a", First: 11, Fixed: true}},
			remembered: map[string]int{"a": 10}, wantError: "has used 10 for a"},
	} {
		t.Run(name, func(t *testing.T) {
			taken := map[int]bool{}
			for _, port := range c.taken {
				taken[port] = true
			}
			got, err := DecidePorts(PortsInput{Needs: c.needs, Remembered: c.remembered, Running: c.running,
				Free: func(node string, p int) bool { return node != "" || !taken[p] }})
			if c.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantError) {
					t.Fatalf("got %v, want %q", err, c.wantError)
				}
				return
			}
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("got %v, %v", got, err)
			}
			for name, port := range c.want {
				if got[name] != port {
					t.Errorf("%s got %d, want %d", name, got[name], port)
				}
			}
		})
	}
}

// 500 ports are tried.
func TestTheLastPortThatIsTried(t *testing.T) {
	for free, want := range map[int]int{10: 10, 509: 509, 510: 0, 9: 0} {
		ports, err := DecidePorts(PortsInput{Needs: []PortNeed{{Name: "a", First: 10}},
			Free: func(_ string, p int) bool { return p == free }})
		if ports["a"] != want || (err == nil) != (want != 0) {
			t.Errorf("with %d free: %v, %v; want %d", free, ports, err, want)
		}
	}
}

// The conventional ports come first; the port that the user chooses is the apiserver's only.
func TestPortNeeds(t *testing.T) {
	status := PortNeeds(NeedsInput{Layout: Layout{Dir: "/d"}})[1].First
	for _, row := range []struct {
		nodes    []string
		user     int
		expected bool
		want     []PortNeed
	}{
		{nil, 0, false, []PortNeed{{Name: "apiserver", First: 6443}}},
		{nil, 1, false, []PortNeed{{Name: "apiserver", First: 1, Fixed: true}}},
		{[]string{"node-1", "b"}, 7443, false, []PortNeed{{Name: "apiserver", First: 7443, Fixed: true},
			{Name: "nodeagent-node-1", First: 10250}, {Name: "nodeagent-b", First: 10250, Node: "b"}}},
		{[]string{"vm"}, 0, true, []PortNeed{{Name: "apiserver", First: 6443, Expected: true},
			{Name: "nodeagent-vm", First: 10250, Expected: true}, {Name: "store", First: 2380}}},
	} {
		want := row.want
		for _, process := range []string{"apiserver", "scheduler", "workload-controllers", "podgc"} {
			want = append(want, PortNeed{Name: process + ".status", First: status})
		}
		for i, node := range row.nodes {
			at := ""
			if i > 0 {
				at = node
			}
			want = append(want, PortNeed{Name: NodeagentProcess(node) + ".status", First: status, Node: at},
				PortNeed{Name: NodeagentProcess(node) + ".health", First: 10256, Expected: row.expected, Node: at},
				PortNeed{Name: ContainerdProcess(node) + ".stream", First: status, Node: at})
		}
		got := PortNeeds(NeedsInput{Layout: Layout{Dir: "/d"}, Nodes: row.nodes, APIServer: row.user,
			Expected: row.expected})
		byName := func(a, b PortNeed) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(got, byName)
		slices.SortFunc(want, byName)
		if !slices.Equal(got, want) {
			t.Errorf("nodes %v, port %d: %v, want %v", row.nodes, row.user, got, want)
		}
	}
}

func TestHexNumber(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "0": 0, "9": 9, "a": 10, "f": 15, "10": 16, "1f": 31,
		"deadbeef": 0xdeadbeef, "0fff01": 0xfff01} {
		if got := hexNumber(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestNoPortLeftIsAnError(t *testing.T) {
	_, err := DecidePorts(PortsInput{Needs: []PortNeed{{Name: "a", First: 10}},
		Free: func(string, int) bool { return false }})
	var taken *PortTakenError
	if err == nil || errors.As(err, &taken) || !strings.Contains(err.Error(), "none of 10 to 509 is free") {
		t.Errorf("got %v", err)
	}
}

func TestPortNeedsCoverEveryProcess(t *testing.T) {
	layout := Layout{Dir: "/d"}
	needs := PortNeeds(NeedsInput{Layout: layout, Nodes: []string{"node-1", "node-2"}})
	ports, err := DecidePorts(PortsInput{Needs: needs, Free: func(string, int) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[place]string{}
	for _, need := range needs {
		at := place{need.Node, ports[need.Name]}
		if other, ok := seen[at]; ok {
			t.Errorf("%s and %s both got %v", need.Name, other, at)
		}
		seen[at] = need.Name
	}
	in := ProcessInput{Layout: layout, Ports: ports, Nodes: []string{"node-1", "node-2"},
		Ranges: Ranges{Pod: ranged("10.244.0.0/16")}}
	for _, process := range in.flat() {
		for _, arg := range process.Args {
			if strings.HasSuffix(arg, ":0") || strings.HasSuffix(arg, "port=0") {
				t.Errorf("%s has no port for %s", process.Name, arg)
			}
		}
	}
}

// Clients find the agent of each node at the port that they expect.
func TestEachAgentIsFoundWhereItIsExpected(t *testing.T) {
	nodes := []string{"node-1", "node-2", "node-3"}
	ports, err := DecidePorts(PortsInput{Needs: PortNeeds(NeedsInput{Layout: Layout{Dir: "/d"}, Nodes: nodes}),
		Free: func(string, int) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if agent := NodeagentProcess(node); ports[agent] != 10250 || ports[HealthPort(agent)] != 10256 {
			t.Errorf("the agent of %s is at %d and %d", node, ports[agent], ports[HealthPort(agent)])
		}
	}
}

// The status ports of two meshes that start together begin at different numbers.
func TestStatusPortsDiffer(t *testing.T) {
	first := map[int]bool{}
	for _, dir := range []string{"/a", "/b", "/c", "/d", "/e"} {
		port := PortNeeds(NeedsInput{Layout: Layout{Dir: dir}})[1].First
		if port < 20000 || port > 27999 || first[port] {
			t.Errorf("%s begins at %d", dir, port)
		}
		first[port] = true
	}
}

func (in ProcessInput) flat() []Process {
	var all []Process
	for _, tier := range DecideProcesses(in) {
		all = append(all, tier...)
	}
	return all
}
