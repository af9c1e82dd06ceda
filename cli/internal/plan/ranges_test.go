package plan

import (
	"encoding/json"
	"errors"
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

// ranged returns a range of one network, or of one of each family; an empty text is the zero Range.
func ranged(text string) Range {
	parsed, err := ParseRange(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

func TestDecideRanges(t *testing.T) {
	for name, c := range map[string]struct {
		pod, service string
		kept         string
		routes       []string
		claimed      []string
		nodes        int
		network      string
		apart, four  bool
		wantPod      string
		wantService  string
		wantNodes    string
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
			wantError: "--pod-cidr: every network"},
		"the user's is routed": {pod: "10.1.0.0/16", routes: []string{"10.1.2.0/24"}, nodes: 1,
			wantError: "--pod-cidr: 10.1.0.0/16 overlaps 10.1.2.0/24"},
		"the user's overlap": {pod: "10.1.0.0/16", service: "10.1.2.0/24", nodes: 1,
			wantError: "--service-cidr: 10.1.2.0/24 overlaps the Pod range"},
		"too small for a node": {pod: "10.1.0.0/25", nodes: 1, wantError: "--pod-cidr: 10.1.0.0/25 must be"},
		"host bits": {service: "10.1.0.1/24", nodes: 1,
			wantError: "--service-cidr: 10.1.0.1/24 must be"},
		"the largest": {pod: "11.0.0.0/8", service: "12.0.0.0/8", nodes: 65536, wantPod: "11.0.0.0/8",
			wantService: "12.0.0.0/8"},
		"larger than the largest": {pod: "12.0.0.0/7", nodes: 1, wantError: "--pod-cidr: 12.0.0.0/7 must be an " +
			"IPv4 network of /8 to /24 without host bits, for example 10.244.0.0/16"},
		"the smallest": {pod: "10.1.0.0/24", service: "10.2.0.0/28", nodes: 1, wantPod: "10.1.0.0/24",
			wantService: "10.2.0.0/28"},
		"smaller than the smallest": {service: "10.2.0.0/29", nodes: 1, wantError: "--service-cidr: 10.2.0.0/29 " +
			"must be an IPv4 network of /8 to /28"},
		"the user's Service range": {service: "10.244.0.0/16", nodes: 1, wantPod: "10.42.0.0/16",
			wantService: "10.244.0.0/16"},
		"a Service range inside of the first": {service: "10.244.9.0/24", nodes: 1, wantPod: "10.42.0.0/16",
			wantService: "10.244.9.0/24"},
		"the user's Service range is routed": {service: "10.1.0.0/16", routes: []string{"10.3.0.0/16", "10.1.2.0/24"},
			nodes: 1, wantError: "--service-cidr: 10.1.0.0/16 overlaps 10.1.2.0/24, which this machine routes"},
		"all but the last": {routes: []string{"10.0.0.0/9", "10.128.0.0/10", "10.192.0.0/11", "10.224.0.0/12",
			"10.244.0.0/16"}, service: "192.168.0.0/24", nodes: 256, wantPod: "10.240.0.0/16",
			wantService: "192.168.0.0/24"},
		"another mesh has claimed Services": {claimed: []string{"10.96.0.0/16"}, nodes: 1, wantPod: "10.244.0.0/16",
			wantService: "10.43.0.0/16"},
		"other meshes have claimed the usual ones": {claimed: []string{"10.96.0.0/16", "10.43.0.0/17", "10.244.0.0/16",
			"10.42.9.0/24"}, nodes: 1, wantPod: "10.128.0.0/16", wantService: "10.16.0.0/16"},
		"the user's is claimed": {service: "10.1.0.0/16", claimed: []string{"10.1.2.0/24"}, nodes: 1,
			wantError: "--service-cidr: 10.1.0.0/16 overlaps 10.1.2.0/24, which another mesh of this machine has: " +
				"name a free one"},
		"the user's Pods are claimed": {pod: "10.1.2.0/24", claimed: []string{"10.1.0.0/16"}, nodes: 1,
			wantError: "--pod-cidr: 10.1.2.0/24 overlaps 10.1.0.0/16, which another mesh of this machine has"},
		"meshes have claimed all": {claimed: []string{"10.0.0.0/9"}, nodes: 1, wantError: "--service-cidr: every " +
			"network that would be tried is routed by this machine or another mesh's: name a free one"},
		"kept, and claimed since": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			claimed: []string{"10.2.0.0/16"}, nodes: 1, wantError: "--service-cidr: 10.2.0.0/16, which this data " +
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
			network: Others, routes: []string{"10.0.0.0/15"}, nodes: 1, wantError: "--pod-cidr: 10.1.0.0/16, which " +
				"this data directory has used from its start, overlaps 10.0.0.0/15, which this machine routes already"},
		"kept, and led to where nodes lead to Pods": {pod: "10.1.0.0/16", service: "10.2.0.0/16", kept: "10.3.0.0/24",
			network: Routes, routes: []string{"10.1.4.0/24"}, nodes: 1, wantError: "--pod-cidr: 10.1.0.0/16, which"},
		"asked for, and led to by others": {pod: "10.1.0.0/16", network: Others, routes: []string{"10.1.4.0/24"},
			nodes: 1, wantError: "--pod-cidr: 10.1.0.0/16 overlaps 10.1.4.0/24, which this machine routes already"},
		"no room for Services": {routes: []string{"10.0.0.0/9"}, nodes: 1, wantError: "--service-cidr: every network"},
		"no nodes":             {pod: "10.1.0.0/24", nodes: 0, wantPod: "10.1.0.0/24", wantService: "10.96.0.0/16"},
		"one node too many": {pod: "10.1.0.0/24", nodes: 2, wantError: "--nodes: 2 nodes with a /24 each do not fit " +
			"into the Pod range 10.1.0.0/24, at most 1 do"},
		"more nodes than room": {pod: "10.1.0.0/23", nodes: 3,
			wantError: "--nodes: 3 nodes with a /24 each do not fit into the Pod range 10.1.0.0/23, at most 2 do"},
		"loopback": {pod: "127.0.0.0/8", nodes: 1, wantError: "--pod-cidr: 127.0.0.0/8 overlaps 127.0.0.0/8, whose " +
			"addresses are given to no Pod or Service"},
		"of both families": {pod: "10.1.0.0/16,fd00:1::/56", service: "10.2.0.0/16,fd00:2::/112", nodes: 2,
			wantPod: "10.1.0.0/16,fd00:1::/56", wantService: "10.2.0.0/16,fd00:2::/112",
			wantNodes: "10.241.0.0/24,fd00:10:241::/64"},
		"Pods of both families": {pod: "10.1.0.0/16,fd00:10:96::/48", nodes: 2, wantPod: "10.1.0.0/16,fd00:10:96::/48",
			wantService: "10.96.0.0/16,fd00:10:43::/112", wantNodes: "10.241.0.0/24,fd00:10:241::/64"},
		"Services of both families": {service: "10.1.0.0/16,fd00:10:244::/112", nodes: 2,
			wantPod:     "10.244.0.0/16,fd00:10:42::/56",
			wantService: "10.1.0.0/16,fd00:10:244::/112", wantNodes: "10.241.0.0/24,fd00:10:241::/64"},
		"of both families beside others": {pod: "10.1.0.0/16,fd00:1::/56", claimed: []string{"fd00:10:96::/64",
			"fd00:10:241::/64", "10.241.0.0/24"}, routes: []string{"fd00:10:43::/48", "fd00:10:241:1::/64", "::/0"},
			nodes: 1, wantPod: "10.1.0.0/16,fd00:1::/56", wantService: "10.96.0.0/16,fd00:10:16::/112",
			wantNodes: "10.241.1.0/24,fd00:10:241:2::/64"},
		"the largest of both families": {pod: "11.0.0.0/8,fd00:1::/48", service: "12.0.0.0/8,fd00:2::/64", nodes: 65536,
			wantPod: "11.0.0.0/8,fd00:1::/48", wantService: "12.0.0.0/8,fd00:2::/64"},
		"the smallest of both families": {pod: "10.1.0.0/24,fd00:1::/64", service: "10.2.0.0/28,fd00:2::/124", nodes: 1,
			wantPod: "10.1.0.0/24,fd00:1::/64", wantService: "10.2.0.0/28,fd00:2::/124"},
		"too large in IPv6": {pod: "10.1.0.0/16,fd00::/47", nodes: 1, wantError: "--pod-cidr: fd00::/47 must be an " +
			"IPv6 network of /48 to /64 without host bits, for example fd00:10:244::/56"},
		"too small in IPv6": {pod: "10.1.0.0/16,fd00::/65", nodes: 1,
			wantError: "--pod-cidr: fd00::/65 must be an IPv6"},
		"Services too large in IPv6": {service: "10.1.0.0/16,fd00::/63", nodes: 1, wantError: "--service-cidr: " +
			"fd00::/63 must be an IPv6 network of /64 to /124 without host bits, for example fd00:10:96::/112"},
		"Services too small in IPv6": {service: "10.1.0.0/16,fd00::/125", nodes: 1, wantError: "--service-cidr: " +
			"fd00::/125 must be an IPv6 network of /64 to /124"},
		"host bits in IPv6": {pod: "10.1.0.0/16,fd00::1/56", nodes: 1, wantError: "--pod-cidr: fd00::1/56 must be"},
		"one node too many in IPv6": {pod: "10.1.0.0/16,fd00::/63", nodes: 3,
			wantError: "--nodes: 3 nodes with a /64 each do not fit into the Pod range fd00::/63, at most 2 do"},
		"multicast": {service: "10.1.0.0/16,ff05::/112", nodes: 1, wantError: "--service-cidr: ff05::/112 overlaps " +
			"ff00::/8, whose addresses are given to no Pod or Service"},
		"between neighbours": {pod: "10.1.0.0/16,fe80::/64", nodes: 1, wantError: "--pod-cidr: fe80::/64 overlaps"},
		"IPv4 in IPv6":       {service: "10.1.0.0/16,::ffff:10.2.0.0/112", nodes: 1, wantError: "overlaps ::/8"},
		"overlap in IPv6": {pod: "10.1.0.0/16,fd00::/56", service: "10.2.0.0/16,fd00::9:0/112", nodes: 1,
			wantError: "--service-cidr: fd00::9:0/112 overlaps the Pod range fd00::/56"},
		"IPv6 that another mesh has": {pod: "10.1.0.0/16,fd00::/56", claimed: []string{"fd00:0:0:5::/64"}, nodes: 1,
			wantError: "--pod-cidr: fd00::/56 overlaps fd00:0:0:5::/64, which another mesh of this machine has"},
		"IPv6 that the machine routes": {service: "10.1.0.0/16,fd00::/112", routes: []string{"fd00::/64"}, nodes: 1,
			wantError: "--service-cidr: fd00::/112 overlaps fd00::/64, which this machine routes already"},
		"all of IPv6 is routed": {pod: "10.1.0.0/16,fdff::/56", routes: []string{"fd00::/16"}, nodes: 1,
			wantError: "--service-cidr: every network of IPv6"},
		"all of IPv6 between the nodes is routed": {pod: "10.1.0.0/16,fdff::/56", service: "10.2.0.0/16,fdfe::/112",
			routes: []string{"fd00::/16"}, nodes: 1, wantError: "no network of IPv6 is free between the nodes"},
		"Services of IPv4 beside Pods of both": {pod: "10.1.0.0/16,fd00::/56", service: "10.2.0.0/16", nodes: 1,
			wantError: "--service-cidr: 10.2.0.0/16 is of IPv4 alone, and --pod-cidr 10.1.0.0/16,fd00::/56 of both " +
				"families: give both of both, or both of IPv4"},
		"Pods of IPv4 beside Services of both": {pod: "10.1.0.0/16", service: "10.2.0.0/16,fd00::/112", nodes: 1,
			wantError: "--pod-cidr: 10.1.0.0/16 is of IPv4 alone, and --service-cidr 10.2.0.0/16,fd00::/112 of both"},
		"both families on a machine of its own": {service: "10.2.0.0/16,fd00::/112", nodes: 1, apart: true,
			wantError: "--service-cidr: 10.2.0.0/16,fd00::/112 is of both families, which keel up alone gives its " +
				"nodes: give an IPv4 network"},
		"IPv4 on a machine of its own": {pod: "10.1.0.0/16", nodes: 1, apart: true, four: true, wantPod: "10.1.0.0/16",
			wantService: "10.96.0.0/16"},
		"without IPv6": {pod: "10.1.0.0/16,fd00::/56", nodes: 1, four: true, wantError: "--pod-cidr: fd00::/56 needs " +
			"IPv6, which this machine's kernel does not have or gives no new link"},
		"kept of both families, and claimed since": {pod: "10.1.0.0/16,fd00:1::/56",
			service: "10.2.0.0/16,fd00:2::/112", kept: "10.3.0.0/24,fd00:3::/64",
			claimed: []string{"fd00:3::/48"}, nodes: 1,
			wantError: "the network between the nodes: fd00:3::/64, which this data directory has used from its " +
				"start, overlaps fd00:3::/48, which another mesh"},
		"kept of both families": {pod: "10.1.0.0/16,fd00:1::/56", service: "10.2.0.0/16,fd00:2::/112",
			kept: "10.3.0.0/24,fd00:3::/64", nodes: 1, wantPod: "10.1.0.0/16,fd00:1::/56",
			wantService: "10.2.0.0/16,fd00:2::/112", wantNodes: "10.3.0.0/24,fd00:3::/64"},
		"kept of both families, and led to by others": {pod: "10.1.0.0/16,fd00:1::/56",
			service: "10.2.0.0/16,fd00:2::/112", kept: "10.3.0.0/24,fd00:3::/64", network: Others,
			routes: []string{"10.1.4.0/24", "fd00:1:0:4::/64"}, nodes: 1, wantPod: "10.1.0.0/16,fd00:1::/56",
			wantService: "10.2.0.0/16,fd00:2::/112"},
	} {
		t.Run(name, func(t *testing.T) {
			in := RangesInput{Pod: ranged(c.pod), Service: ranged(c.service), Between: ranged(c.kept), IPv6: !c.four,
				Kept: c.kept != "", Nodes: c.nodes, PodNetwork: c.network, Apart: c.apart}
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
			if err != nil || got.Pod != ranged(c.wantPod) || got.Service != ranged(c.wantService) ||
				c.wantNodes != "" && got.Nodes != ranged(c.wantNodes) || got.Nodes.IsValid() == c.apart {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// A typed range is one IPv4 network, or one of each family, and is printed as it was typed.
func TestParseRange(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "10.1.0.0/16": "10.1.0.0/16", "10.1.0.0/16,fd00::/56": "10.1.0.0/16,fd00::/56",
		"10.1.0.0/16, fd00::/56": "10.1.0.0/16,fd00::/56",
	} {
		got, err := ParseRange(text)
		if err != nil || got.String() != want || got.IsValid() != (want != "") ||
			got.Dual() != strings.Contains(want, ",") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
		encoded, err := json.Marshal(Ranges{Pod: got})
		var again Ranges
		if err = errors.Join(err, json.Unmarshal(encoded, &again)); err != nil || again.Pod != got {
			t.Errorf("%q is recorded as %s: %v, %v", text, encoded, again, err)
		}
	}
	for text, want := range map[string]string{
		"10.1.0.0": `"10.1.0.0" must be an IPv4 network such as 10.244.0.0/16, or one of each family such as ` +
			"10.244.0.0/16,fd00:10:244::/56",
		"10.1.0.0/16,":                    `"" must be an IPv4 network`,
		"10.1.0.0/16,fd00::/56,fd01::/56": "10.1.0.0/16,fd00::/56,fd01::/56 are 3 networks: give one of IPv4,",
		"10.1.0.0/16,10.2.0.0/16":         "10.1.0.0/16 and 10.2.0.0/16 are of one family: give one of IPv4, or one of",
		"fd00::/56,fd01::/56":             "fd00::/56 and fd01::/56 are of one family",
		"fd00::/56":                       "fd00::/56 is of IPv6, which a mesh has only beside IPv4: give IPV4,",
		"fd00::/56,10.1.0.0/16": "fd00::/56 comes first, and the first family of a mesh is IPv4: give " +
			"10.1.0.0/16,fd00::/56",
		"10.1.0.0/16,fd00::/56,10.2.0.0/16": "are 3 networks",
	} {
		if got, err := ParseRange(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestWhatARangeHolds(t *testing.T) {
	both := ranged("10.1.0.0/16,fd00::/56")
	for text, want := range map[string]bool{"10.1.0.0/16": true, "10.1.255.0/24": true, "10.0.0.0/15": false,
		"10.2.0.0/24": false, "fd00::/56": true, "fd00:0:0:ff::/64": true, "fd00:0:0:100::/64": false,
		"fd00::/55": false} {
		if both.Holds(prefix(text)) != want || (Range{}).Holds(prefix(text)) {
			t.Errorf("%s: held by %v: %t, by none: %t", text, both, !want, Range{}.Holds(prefix(text)))
		}
	}
	for text, want := range map[string]bool{"10.1.0.1": true, "10.2.0.1": false, "fd00::1": true, "fd01::1": false} {
		address := netip.MustParseAddr(text)
		if both.Contains(address) != want || (Range{}).Contains(address) {
			t.Errorf("%s: of %v: %t", text, both, !want)
		}
	}
}

// For any routes and claims, the chosen ranges are free, and the nodes' shares lie side by side within them.
func TestChosenRangesAreFree(t *testing.T) {
	for _, asked := range []Range{{}, ranged("192.168.0.0/24,fdff::/64")} {
		var routes, claimed []netip.Prefix
		meshes := 0
		for ; ; meshes++ {
			in := RangesInput{Service: asked, IPv6: true, Routes: routes, Claimed: claimed, Nodes: 3}
			got, err := DecideRanges(in)
			if err != nil {
				break
			}
			if dual := asked.Dual(); got.Pod.Dual() != dual || got.Nodes.Dual() != dual || got.Service.Dual() != dual {
				t.Fatalf("%v is not all of the same families", got)
			}
			taken := slices.Concat(routes, claimed)
			for _, chosen := range []Range{got.Pod, got.Service, got.Nodes} {
				for _, network := range chosen.Networks() {
					if other, hit := overlapping(network, taken); hit {
						t.Fatalf("%v overlaps %s", got, other)
					}
				}
				taken = append(taken, chosen.Networks()...)
			}
			routes = append(routes, slices.Concat(got.Pod.Networks(), got.Nodes.Networks())...)
			if !asked.IsValid() {
				claimed = append(claimed, got.Service.Networks()...)
			}
		}
		if meshes < 50 {
			t.Errorf("with Services in %q only %d meshes find room on one machine", asked, meshes)
		}
	}
}

// A mesh keeps the network between its nodes, whose addresses are the machine's and then one of each further node.
func TestTheNetworkBetweenTheNodes(t *testing.T) {
	kept, err := DecideRanges(RangesInput{Between: ranged("10.250.3.0/24"), Nodes: 2})
	if err != nil || kept.Nodes != ranged("10.250.3.0/24") {
		t.Errorf("got %v, %v", kept, err)
	}
	for index, want := range map[int]string{0: "10.250.3.1", 1: "10.250.3.2", 98: "10.250.3.99"} {
		if got := NodeAddress(kept.Nodes.IPv4, index); got.String() != want {
			t.Errorf("node %d is at %s, want %s", index+1, got, want)
		}
	}
	crowded, err := DecideRanges(RangesInput{Pod: ranged("10.0.0.0/8"), Service: ranged("172.16.0.0/16"), Nodes: 1})
	if err != nil || crowded.Nodes != ranged("192.168.224.0/24") {
		t.Errorf("beside Pods in all of 10/8: %v, %v", crowded, err)
	}
	_, err = DecideRanges(RangesInput{Pod: ranged("11.0.0.0/8"), Service: ranged("172.16.0.0/16"), Nodes: 1,
		Routes: []netip.Prefix{prefix("10.0.0.0/8"), prefix("192.168.0.0/16")}})
	if err == nil || !strings.HasPrefix(err.Error(), "no network is free between the nodes") {
		t.Errorf("where all is routed: %v", err)
	}
}
