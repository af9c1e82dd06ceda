package plan

import (
	"fmt"
	"net/netip"
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
	// Routes are the networks that the machine reaches by now, without those of this mesh and without default routes.
	Routes []netip.Prefix
	Nodes  int
}

// Ranges are the mesh's networks.
type Ranges struct {
	Pod     netip.Prefix `json:"pod"`
	Service netip.Prefix `json:"service"`
}

// DecideRanges chooses ranges that collide neither with the machine's networks nor with each other.
func DecideRanges(in RangesInput) (Ranges, error) {
	ranges := Ranges{Pod: in.Pod, Service: in.Service}
	for _, check := range []struct {
		flag   string
		prefix netip.Prefix
		bits   int
	}{{"--pod-range", in.Pod, nodeBits}, {"--service-range", in.Service, 28}} {
		if err := checkRange(check.flag, check.prefix, check.bits, in.Routes); err != nil {
			return Ranges{}, err
		}
	}
	var err error
	if !ranges.Pod.IsValid() {
		if ranges.Pod, err = pickRange("--pod-range", podCandidates, in.Routes, ranges.Service); err != nil {
			return Ranges{}, err
		}
	}
	if !ranges.Service.IsValid() {
		if ranges.Service, err = pickRange("--service-range", serviceCandidates, in.Routes, ranges.Pod); err != nil {
			return Ranges{}, err
		}
	}
	if ranges.Pod.Overlaps(ranges.Service) {
		return Ranges{}, fmt.Errorf("--service-range: %s overlaps the Pod range %s", ranges.Service, ranges.Pod)
	}
	if room := 1 << (nodeBits - ranges.Pod.Bits()); in.Nodes > room {
		return Ranges{}, fmt.Errorf("--nodes: %d nodes with a /%d each do not fit into the Pod range %s, at most %d do",
			in.Nodes, nodeBits, ranges.Pod, room)
	}
	return ranges, nil
}

// NodeRange is the share of the node at an index that counts from 0.
func NodeRange(pod netip.Prefix, index int) netip.Prefix {
	address := pod.Masked().Addr().As4()
	number := uint32(address[0])<<24 | uint32(address[1])<<16 | uint32(address[2])<<8 | uint32(address[3])
	number += uint32(index) << (32 - nodeBits)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(number >> 24), byte(number >> 16), byte(number >> 8),
		byte(number)}), nodeBits)
}

// FirstAddress is the first usable address of a range: a node's gateway, or the apiserver's own Service.
func FirstAddress(prefix netip.Prefix) netip.Addr { return prefix.Masked().Addr().Next() }

func checkRange(flag string, prefix netip.Prefix, maxBits int, routes []netip.Prefix) error {
	if !prefix.IsValid() {
		return nil
	}
	if !prefix.Addr().Is4() || prefix != prefix.Masked() || prefix.Bits() > maxBits || prefix.Bits() < 8 {
		return fmt.Errorf("%s: %s must be an IPv4 network of /8 to /%d without host bits, for example %s", flag, prefix,
			maxBits, podCandidates[0])
	}
	if route, hit := overlapping(prefix, routes); hit {
		return fmt.Errorf("%s: %s overlaps %s, which this machine routes already", flag, prefix, route)
	}
	return nil
}

func pickRange(flag string, candidates, routes []netip.Prefix, other netip.Prefix) (netip.Prefix, error) {
	for _, candidate := range candidates {
		if _, hit := overlapping(candidate, routes); !hit && (!other.IsValid() || !candidate.Overlaps(other)) {
			return candidate, nil
		}
	}
	return netip.Prefix{},
		fmt.Errorf("%s: every network that would be tried is routed by this machine: name a free one", flag)
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
