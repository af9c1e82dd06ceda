package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Candidates in the order in which they are tried: the ranges that users of the field expect first.
var (
	podCandidates     = candidates("10.244.0.0/16", "10.42.0.0/16", 10, 128, 240)
	serviceCandidates = candidates("10.96.0.0/16", "10.43.0.0/16", 10, 16, 127)
)

// nodeBits is the prefix length of one node's share of the Pod range: 254 addresses.
const nodeBits = 24

// RangesInput is what choosing the address ranges depends on.
type RangesInput struct {
	// Pod and Service are what flags or an earlier run say; the zero Prefix leaves the choice to the plan.
	Pod, Service netip.Prefix
	// Between is the network between the nodes, as an earlier run chose it.
	Between netip.Prefix
	// Kept is set where an earlier run has chosen all of that: the data directory keeps it.
	Kept bool
	// Routes are the networks that the machine reaches by now, without those of this mesh and without default routes.
	Routes []netip.Prefix
	// Claimed are what other meshes of the machine have.
	Claimed []netip.Prefix
	Nodes   int
	// PodNetwork is what an earlier run recorded. Others lead to the Pods of the kept range as they please.
	PodNetwork string
	// Apart is set where each node is a machine of its own: nothing is needed between them.
	Apart bool
}

// Ranges are the mesh's networks.
type Ranges struct {
	Pod     netip.Prefix `json:"pod"`
	Service netip.Prefix `json:"service"`
	// Nodes is the network between the nodes of one machine; the zero Prefix where each is a machine of its own.
	Nodes netip.Prefix `json:"nodes,omitzero"`
}

// DecideRanges chooses ranges that collide neither with the machine's networks nor with each other.
func DecideRanges(in RangesInput) (Ranges, error) {
	ranges := Ranges{Pod: in.Pod, Service: in.Service, Nodes: in.Between}
	if in.Kept && in.PodNetwork == Others {
		in.Routes = slices.DeleteFunc(slices.Clone(in.Routes), func(route netip.Prefix) bool {
			return in.Pod.Bits() <= route.Bits() && in.Pod.Contains(route.Addr())
		})
	}
	for _, check := range []struct {
		flag   string
		prefix netip.Prefix
		bits   int
	}{{"--pod-range", in.Pod, nodeBits}, {"--service-range", in.Service, 28}} {
		if err := in.checkRange(check.flag, check.prefix, check.bits); err != nil {
			return Ranges{}, err
		}
	}
	var err error
	if !ranges.Pod.IsValid() {
		if ranges.Pod, err = in.pickRange("--pod-range", podCandidates, ranges.Service); err != nil {
			return Ranges{}, err
		}
	}
	if !ranges.Service.IsValid() {
		if ranges.Service, err = in.pickRange("--service-range", serviceCandidates, ranges.Pod); err != nil {
			return Ranges{}, err
		}
	}
	if ranges.Pod.Overlaps(ranges.Service) {
		return Ranges{}, fmt.Errorf("--service-range: %s overlaps the Pod range %s", ranges.Service, ranges.Pod)
	}
	if !in.Apart {
		if ranges.Nodes, err = in.betweenNodes(ranges); err != nil {
			return Ranges{}, err
		}
	}
	if room := 1 << (nodeBits - ranges.Pod.Bits()); in.Nodes > room {
		return Ranges{}, fmt.Errorf("--nodes: %d nodes with a /%d each do not fit into the Pod range %s, at most %d do",
			in.Nodes, nodeBits, ranges.Pod, room)
	}
	return ranges, nil
}

// betweenNodes is the network between the nodes, chosen where there is none yet. Other meshes of the machine have
// theirs.
func (in RangesInput) betweenNodes(ranges Ranges) (netip.Prefix, error) {
	if in.Between.IsValid() {
		return in.Between, in.checkFree("the network between the nodes", in.Between)
	}
	for _, candidate := range betweenCandidates() {
		if in.taken(candidate) == "" && !candidate.Overlaps(ranges.Pod) && !candidate.Overlaps(ranges.Service) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, errors.New("no network is free between the nodes: all of 10.241.0.0/24 to 10.254.15.0/24 " +
		"and 192.168.224.0/24 to 192.168.254.0/24 are Pods', Services', routed by this machine or another mesh's")
}

func betweenCandidates() []netip.Prefix {
	var all []netip.Prefix
	for i := byte(241); i <= 254; i++ {
		for j := range byte(16) {
			all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, i, j, 0}), nodeBits))
		}
	}
	for i := byte(224); i <= 254; i++ {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, i, 0}), nodeBits))
	}
	return all
}

// NodeAddress is the address of the node at an index in the network between the nodes. The first node is the machine
// itself, at the network's first address.
func NodeAddress(between netip.Prefix, index int) netip.Addr {
	address := FirstAddress(between)
	for range index {
		address = address.Next()
	}
	return address
}

// FirstAddress is the first usable address of a range: a node's gateway, or the apiserver's own Service.
func FirstAddress(prefix netip.Prefix) netip.Addr { return prefix.Masked().Addr().Next() }

func (in RangesInput) checkRange(flag string, prefix netip.Prefix, maxBits int) error {
	if !prefix.IsValid() {
		return nil
	}
	if !prefix.Addr().Is4() || prefix != prefix.Masked() || prefix.Bits() > maxBits || prefix.Bits() < 8 {
		return fmt.Errorf("%s: %s must be an IPv4 network of /8 to /%d without host bits, for example %s", flag, prefix,
			maxBits, podCandidates[0])
	}
	return in.checkFree(flag, prefix)
}

func (in RangesInput) checkFree(what string, prefix netip.Prefix) error {
	whose := in.taken(prefix)
	if whose == "" {
		return nil
	}
	if in.Kept {
		return fmt.Errorf("%s: %s, which this data directory has used from its start, overlaps %s: end that, or "+
			"choose another data directory", what, prefix, whose)
	}
	return fmt.Errorf("%s: %s overlaps %s: name a free one", what, prefix, whose)
}

// taken says what of the machine a network overlaps; nothing where it is free.
func (in RangesInput) taken(prefix netip.Prefix) string {
	if claimed, hit := overlapping(prefix, in.Claimed); hit {
		return fmt.Sprintf("%s, which another mesh of this machine has", claimed)
	}
	if route, hit := overlapping(prefix, in.Routes); hit {
		return fmt.Sprintf("%s, which this machine routes already", route)
	}
	return ""
}

func (in RangesInput) pickRange(flag string, candidates []netip.Prefix, other netip.Prefix) (netip.Prefix, error) {
	for _, candidate := range candidates {
		if in.taken(candidate) == "" && (!other.IsValid() || !candidate.Overlaps(other)) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("%s: every network that would be tried is routed by this machine or another "+
		"mesh's: name a free one", flag)
}

func overlapping(prefix netip.Prefix, routes []netip.Prefix) (netip.Prefix, bool) {
	for _, route := range routes {
		if route.Bits() > 0 && prefix.Overlaps(route) {
			return route, true
		}
	}
	return netip.Prefix{}, false
}

func candidates(first, second string, octet byte, from, to int) []netip.Prefix {
	all := []netip.Prefix{netip.MustParsePrefix(first), netip.MustParsePrefix(second)}
	for i := from; i <= to; i++ {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{octet, byte(i), 0, 0}), 16))
	}
	return all
}
