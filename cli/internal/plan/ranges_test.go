package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func prefix(s string) netip.Prefix {
	if s == "" {
		return netip.Prefix{}
	}
	return netip.MustParsePrefix(s)
}

func TestDecideRanges(t *testing.T) {
	for name, c := range map[string]struct {
		pod, service string
		kept         string
		routes       []string
		claimed      []string
		nodes        int
		network      string
		wantPod      string
		wantService  string
		wantError    string
	}{
		"an idle machine": {nodes: 1, wantPod: "10.244.0.0/16", wantService: "10.96.0.0/16"},
		"another mesh is there": {routes: []string{"10.244.3.0/24"}, nodes: 1, wantPod: "10.42.0.0/16",
			wantService: "10.96.0.0/16"},
		"the usual ones are taken": {routes: []string{"10.244.0.0/16", "10.42.0.0/16", "10.96.0.0/12",
			"10.43.0.0/16"}, nodes: 1, wantPod: "10.128.0.0/16", wantService: "10.16.0.0/16"},
		"a default route is no route": {routes: []string{"0.0.0.0/0"}, nodes: 1, wantPod: "10.244.0.0/16",
			wantService: "10.96.0.0/16"},
		"the user's Pod range": {pod: "10.96.0.0/16", nodes: 1, wantPod: "10.96.0.0/16",
			wantService: "10.43.0.0/16"},
		"both from the user": {pod: "192.168.0.0/20", service: "192.168.16.0/28", nodes: 16,
			wantPod: "192.168.0.0/20", wantService: "192.168.16.0/28"},
		"all of 10/8 is routed": {routes: []string{"10.0.0.0/8"}, nodes: 1,
			wantError: "--pod-range: every network"},
		"the user's is routed": {pod: "10.1.0.0/16", routes: []string{"10.1.2.0/24"}, nodes: 1,
			wantError: "--pod-range: 10.1.0.0/16 overlaps 10.1.2.0/24"},
		"the user's overlap": {pod: "10.1.0.0/16", service: "10.1.2.0/24", nodes: 1,
			wantError: "--service-range: 10.1.2.0/24 overlaps the Pod range"},
		"too small for a node": {pod: "10.1.0.0/25", nodes: 1, wantError: "--pod-range: 10.1.0.0/25 must be"},
		"host bits": {service: "10.1.0.1/24", nodes: 1,
			wantError: "--service-range: 10.1.0.1/24 must be"},
		"IPv6": {pod: "fd00::/64", nodes: 1, wantError: "must be an IPv4 network"},
		"the largest": {pod: "11.0.0.0/8", service: "12.0.0.0/8", nodes: 65536, wantPod: "11.0.0.0/8",
			wantService: "12.0.0.0/8"},
		"larger than the largest": {pod: "12.0.0.0/7", nodes: 1, wantError: "--pod-range: 12.0.0.0/7 must be an " +
			"IPv4 network of /8 to /24 without host bits, for example 10.244.0.0/16"},
		"the smallest": {pod: "10.1.0.0/24", service: "10.2.0.0/28", nodes: 1, wantPod: "10.1.0.0/24",
			wantService: "10.2.0.0/28"},
		"smaller than the smallest": {service: "10.2.0.0/29", nodes: 1, wantError: "--service-range: 10.2.0.0/29 " +
			"must be an IPv4 network of /8 to /28"},
		"the user's Service range": {service: "10.244.0.0/16", nodes: 1, wantPod: "10.42.0.0/16",
			wantService: "10.244.0.0/16"},
		"a Service range inside of the first": {service: "10.244.9.0/24", nodes: 1, wantPod: "10.42.0.0/16",
			wantService: "10.244.9.0/24"},
		"the user's Service range is routed": {service: "10.1.0.0/16", routes: []string{"10.3.0.0/16", "10.1.2.0/24"},
			nodes: 1, wantError: "--service-range: 10.1.0.0/16 overlaps 10.1.2.0/24, which this machine routes"},
		"all but the last": {routes: []string{"10.0.0.0/9", "10.128.0.0/10", "10.192.0.0/11", "10.224.0.0/12",
			"10.244.0.0/16"}, service: "192.168.0.0/24", nodes: 256, wantPod: "10.240.0.0/16",
			wantService: "192.168.0.0/24"},
		"another mesh has claimed Services": {claimed: []string{"10.96.0.0/16"}, nodes: 1, wantPod: "10.244.0.0/16",
			wantService: "10.43.0.0/16"},
		"other meshes have claimed the usual ones": {claimed: []string{"10.96.0.0/16", "10.43.0.0/17", "10.244.0.0/16",
			"10.42.9.0/24"}, nodes: 1, wantPod: "10.128.0.0/16", wantService: "10.16.0.0/16"},
		"the user's is claimed": {service: "10.1.0.0/16", claimed: []string{"10.1.2.0/24"}, nodes: 1,
			wantError: "--service-range: 10.1.0.0/16 overlaps 10.1.2.0/24, which another mesh of this machine has: " +
				"name a free one"},
		"the user's Pods are claimed": {pod: "10.1.2.0/24", claimed: []string{"10.1.0.0/16"}, nodes: 1,
			wantError: "--pod-range: 10.1.2.0/24 overlaps 10.1.0.0/16, which another mesh of this machine has"},
		"meshes have claimed all": {claimed: []string{"10.0.0.0/9"}, nodes: 1, wantError: "--service-range: every " +
			"network that would be tried is routed by this machine or another mesh's: name a free one"},
		"kept, and claimed since": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			claimed: []string{"10.2.0.0/16"}, nodes: 1, wantError: "--service-range: 10.2.0.0/16, which this data " +
				"directory has used from its start, overlaps 10.2.0.0/16, which another mesh of this machine has: " +
				"end that, or choose another data directory"},
		"kept between the nodes, and claimed since": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			claimed: []string{"10.3.0.0/24"}, nodes: 1, wantError: "the network between the nodes: 10.3.0.0/24, " +
				"which this data directory has used from its start, overlaps 10.3.0.0/24, which another mesh"},
		"kept between the nodes, and routed since": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			routes: []string{"10.3.0.0/20"}, nodes: 1, wantError: "the network between the nodes: 10.3.0.0/24, which " +
				"this data directory has used from its start, overlaps 10.3.0.0/20, which this machine routes already"},
		"kept, beside others": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			claimed: []string{"10.0.0.0/16", "10.3.1.0/24"}, nodes: 1, wantPod: "10.1.0.0/16",
			wantService: "10.2.0.0/16"},
		"kept, and led to by others": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24", network: Others,
			routes: []string{"10.1.4.0/24", "10.1.0.0/16"}, nodes: 1, wantPod: "10.1.0.0/16",
			wantService: "10.2.0.0/16"},
		"kept, and led to by others beyond it": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			network: Others, routes: []string{"10.0.0.0/15"}, nodes: 1, wantError: "--pod-range: 10.1.0.0/16, which " +
				"this data directory has used from its start, overlaps 10.0.0.0/15, which this machine routes already"},
		"kept, and led to where nodes lead to Pods": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			network: Routes, routes: []string{"10.1.4.0/24"}, nodes: 1, wantError: "--pod-range: 10.1.0.0/16, which"},
		"asked for, and led to by others": {pod: "10.1.0.0/16", network: Others, routes: []string{"10.1.4.0/24"},
			nodes: 1, wantError: "--pod-range: 10.1.0.0/16 overlaps 10.1.4.0/24, which this machine routes already"},
		"no room for Services": {routes: []string{"10.0.0.0/9"}, nodes: 1, wantError: "--service-range: every network"},
		"no nodes":             {pod: "10.1.0.0/24", nodes: 0, wantPod: "10.1.0.0/24", wantService: "10.96.0.0/16"},
		"one node too many": {pod: "10.1.0.0/24", nodes: 2, wantError: "--nodes: 2 nodes with a /24 each do not fit " +
			"into the Pod range 10.1.0.0/24, at most 1 do"},
		"more nodes than room": {pod: "10.1.0.0/23", nodes: 3,
			wantError: "--nodes: 3 nodes with a /24 each do not fit into the Pod range 10.1.0.0/23, at most 2 do"},
	} {
		t.Run(name, func(t *testing.T) {
			in := RangesInput{Pod: prefix(c.pod), Service: prefix(c.service), Between: prefix(c.kept),
				Kept: c.kept != "", Nodes: c.nodes, PodNetwork: c.network}
			for _, claimed := range c.claimed {
				in.Claimed = append(in.Claimed, prefix(claimed))
			}
			for _, route := range c.routes {
				in.Routes = append(in.Routes, prefix(route))
			}
			got, err := DecideRanges(in)
			if c.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantError) {
					t.Fatalf("got %v, want %q", err, c.wantError)
				}
				return
			}
			if err != nil || got.Pod != prefix(c.wantPod) || got.Service != prefix(c.wantService) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// Whatever is routed and claimed: what is chosen is free, and the nodes' shares lie side by side within it.
func TestChosenRangesAreFree(t *testing.T) {
	var routes, claimed []netip.Prefix
	for {
		got, err := DecideRanges(RangesInput{Routes: routes, Claimed: claimed, Nodes: 3})
		if err != nil {
			break
		}
		for _, route := range slices.Concat(routes, claimed) {
			if got.Pod.Overlaps(route) || got.Service.Overlaps(route) {
				t.Fatalf("%v overlaps %v", got, route)
			}
		}
		if got.Nodes.Bits() != 24 || got.Nodes.Overlaps(got.Pod) || got.Nodes.Overlaps(got.Service) {
			t.Fatalf("%v overlap", got)
		}
		if _, hit := overlapping(got.Nodes, slices.Concat(routes, claimed)); hit {
			t.Fatalf("%s between the nodes is taken", got.Nodes)
		}
		routes, claimed = append(routes, got.Pod, got.Nodes), append(claimed, got.Service)
	}
	if len(routes) < 2*50 {
		t.Errorf("only %d meshes find room on one machine", len(routes)/2)
	}
}

// A mesh keeps the network between its nodes, whose addresses are the machine's and then one of each further node.
func TestTheNetworkBetweenTheNodes(t *testing.T) {
	kept, err := DecideRanges(RangesInput{Between: prefix("10.250.3.0/24"), Nodes: 2})
	if err != nil || kept.Nodes != prefix("10.250.3.0/24") {
		t.Errorf("got %v, %v", kept, err)
	}
	for index, want := range map[int]string{0: "10.250.3.1", 1: "10.250.3.2", 98: "10.250.3.99"} {
		if got := NodeAddress(kept.Nodes, index); got.String() != want {
			t.Errorf("node %d is at %s, want %s", index+1, got, want)
		}
	}
	crowded, err := DecideRanges(RangesInput{Pod: prefix("10.0.0.0/8"), Service: prefix("172.16.0.0/16"), Nodes: 1})
	if err != nil || crowded.Nodes != prefix("192.168.224.0/24") {
		t.Errorf("beside Pods in all of 10/8: %v, %v", crowded, err)
	}
	_, err = DecideRanges(RangesInput{Pod: prefix("11.0.0.0/8"), Service: prefix("172.16.0.0/16"), Nodes: 1,
		Routes: []netip.Prefix{prefix("10.0.0.0/8"), prefix("192.168.0.0/16")}})
	if err == nil || !strings.HasPrefix(err.Error(), "no network is free between the nodes") {
		t.Errorf("where all is routed: %v", err)
	}
}
