package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Flags that name the ranges.
const (
	PodRangeFlag     = "--pod-cidr"
	ServiceRangeFlag = "--service-cidr"
)

// Candidates in the order in which they are tried: the conventional ranges first. The IPv6 candidates use the same
// numbers as the IPv4 candidates.
var (
	podCandidates     = candidates("/56", 244, 42, 128, 240)
	serviceCandidates = candidates("/112", 96, 43, 16, 127)
)

// Prefix lengths of one node's share of the Pod range: 254 IPv4 addresses, and the usual IPv6 segment. The
// controller that assigns the shares tracks at most 1<<shareBits of them.
const (
	nodeBits     = 24
	nodeBitsIPv6 = 64
	shareBits    = 16
)

// lengths is the range of prefix lengths that a network may have.
type lengths struct{ least, most int }

// Allowed prefix lengths, for IPv4 and IPv6. Cluster DNS has the tenth address of the Service range.
var (
	podLengths     = [2]lengths{{8, nodeBits}, {nodeBitsIPv6 - shareBits, nodeBitsIPv6}}
	serviceLengths = [2]lengths{{8, 28}, {nodeBitsIPv6, 124}}
)

// RangesInput holds what DecideRanges decides from.
type RangesInput struct {
	// Pod and Service are the ranges from flags or an earlier run; the zero Range leaves the choice to the plan.
	Pod, Service Range
	// Between is the network between the nodes that an earlier run chose.
	Between Range
	// Kept is set if an earlier run chose all of them: the data directory keeps them.
	Kept bool
	// Given is set if the mesh chose all of them before this machine joins it.
	Given bool
	// Routes are the networks that the machine has routes to, except those of this mesh and default routes.
	Routes []netip.Prefix
	// Claimed are the ranges of other meshes on the machine.
	Claimed []netip.Prefix
	// IPv6 is set if new links of the machine may have IPv6 addresses.
	IPv6  bool
	Nodes int
	// PodNetwork is the value that an earlier run recorded. With Others, a foreign network may route to Pods of
	// the kept range in any way.
	PodNetwork string
	// Apart is set if each node is a separate machine: no network between the nodes is needed.
	Apart bool
}

// Ranges are the mesh's networks: either all are IPv4 only, or all have both families.
type Ranges struct {
	Pod     Range `json:"pod"`
	Service Range `json:"service"`
	// Nodes is the network between the nodes of one machine; the zero Range if each is a separate machine.
	Nodes Range `json:"nodes,omitzero"`
}

// DecideRanges chooses ranges that overlap neither the machine's networks nor each other. If the user asks for
// both families in one range, all ranges have both.
func DecideRanges(in RangesInput) (Ranges, error) {
	if in.Kept && in.PodNetwork == Others {
		in.Routes = slices.DeleteFunc(slices.Clone(in.Routes), in.Pod.Holds)
	}
	if err := in.checkFamilies(); err != nil {
		return Ranges{}, err
	}
	if err := in.checkRange(PodRangeFlag, in.Pod, podLengths, podCandidates); err != nil {
		return Ranges{}, err
	}
	if err := in.checkRange(ServiceRangeFlag, in.Service, serviceLengths, serviceCandidates); err != nil {
		return Ranges{}, err
	}
	ranges := Ranges{Pod: in.Pod, Service: in.Service, Nodes: in.Between}
	var err error
	if !ranges.Pod.IsValid() {
		if ranges.Pod, err = in.pickRange(PodRangeFlag, podCandidates, ranges.Service); err != nil {
			return Ranges{}, err
		}
	}
	if !ranges.Service.IsValid() {
		if ranges.Service, err = in.pickRange(ServiceRangeFlag, serviceCandidates, ranges.Pod); err != nil {
			return Ranges{}, err
		}
	}
	for _, service := range ranges.Service.Networks() {
		if pods, hit := overlapping(service, ranges.Pod.Networks()); hit {
			return Ranges{}, fmt.Errorf("%s: %s overlaps the Pod range %s", ServiceRangeFlag, service, pods)
		}
	}
	if !in.Apart {
		if ranges.Nodes, err = in.betweenNodes(ranges); err != nil {
			return Ranges{}, err
		}
	}
	return ranges, checkRoom(in.Nodes, ranges.Pod)
}

// dual reports whether the mesh has both families.
func (in RangesInput) dual() bool { return in.Pod.Dual() || in.Service.Dual() }

// checkFamilies returns an error if the mesh cannot have the requested families.
func (in RangesInput) checkFamilies() error {
	if !in.dual() {
		return nil
	}
	flag, asked, other, beside := PodRangeFlag, in.Pod, ServiceRangeFlag, in.Service
	if !asked.Dual() {
		flag, asked, other, beside = other, beside, flag, asked
	}
	switch {
	case beside.IsValid() && !beside.Dual():
		return fmt.Errorf("%s: %s is of IPv4 alone, and %s %s of both families: give both of both, or both of IPv4",
			other, beside, flag, asked)
	case in.Apart:
		return fmt.Errorf("%s: %s is of both families, which keel up alone gives its nodes: give an IPv4 network", flag,
			asked)
	case !in.IPv6:
		return fmt.Errorf("%s: %s needs IPv6, which this machine's kernel does not have or gives no new link "+
			"(net.ipv6.conf.default.disable_ipv6)", flag, asked.IPv6)
	}
	return nil
}

// checkRoom returns an error unless each node gets its share of every family.
func checkRoom(nodes int, pods Range) error {
	for _, network := range pods.Networks() {
		bits := nodeBits
		if network.Addr().Is6() {
			bits = nodeBitsIPv6
		}
		if room := 1 << (bits - network.Bits()); nodes > room {
			return fmt.Errorf("--nodes: %d nodes with a /%d each do not fit into the Pod range %s, at most %d do",
				nodes, bits, network, room)
		}
	}
	return nil
}

// betweenNodes returns the network between the nodes and chooses it if there is none yet. It avoids those of other
// meshes on the machine.
func (in RangesInput) betweenNodes(ranges Ranges) (Range, error) {
	if in.Between.IsValid() {
		return in.Between, in.checkFree("the network between the nodes", in.Between)
	}
	taken := func(candidate netip.Prefix) bool {
		_, hit := overlapping(candidate, slices.Concat(ranges.Pod.Networks(), ranges.Service.Networks()))
		return hit || in.taken(candidate) != ""
	}
	all := betweenCandidates()
	var between Range
	if free := slices.IndexFunc(all, func(c Range) bool { return !taken(c.IPv4) }); free >= 0 {
		between.IPv4 = all[free].IPv4
	} else {
		return Range{}, errors.New("no network is free between the nodes: all of 10.241.0.0/24 to 10.254.15.0/24 " +
			"and 192.168.224.0/24 to 192.168.254.0/24 are Pods', Services', routed by this machine or another mesh's")
	}
	if !in.dual() {
		return between, nil
	}
	free := slices.IndexFunc(all, func(c Range) bool { return c.Dual() && !taken(c.IPv6) })
	if free < 0 {
		return Range{}, errors.New("no network of IPv6 is free between the nodes: all of fd00:10:241::/64 to " +
			"fd00:10:254:f::/64 are Pods', Services', routed by this machine or another mesh's")
	}
	between.IPv6 = all[free].IPv6
	return between, nil
}

func betweenCandidates() []Range {
	var all []Range
	for i := byte(241); i <= 254; i++ {
		for j := range byte(16) {
			all = append(all, Range{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, i, j, 0}), nodeBits),
				netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d:%x::/%d", i, j, nodeBitsIPv6))})
		}
	}
	for i := byte(224); i <= 254; i++ {
		all = append(all, Range{IPv4: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, i, 0}), nodeBits)})
	}
	return all
}

// NodeAddress returns the address of the node at an index in the network between the nodes. The first node is the
// machine itself, at the network's first address.
func NodeAddress(between netip.Prefix, index int) netip.Addr {
	address := FirstAddress(between)
	for range index {
		address = address.Next()
	}
	return address
}

// FirstAddress returns the first usable address of a range: a node's gateway, or the apiserver's own Service.
func FirstAddress(prefix netip.Prefix) netip.Addr { return prefix.Masked().Addr().Next() }

// checkRange returns an error if a range is not valid or overlaps another network.
func (in RangesInput) checkRange(flag string, asked Range, allowed [2]lengths, examples []Range) error {
	for i, network := range asked.Networks() {
		family, example, bits := "IPv4", examples[0].IPv4, allowed[i]
		if network.Addr().Is6() {
			family, example = "IPv6", examples[0].IPv6
		}
		if network != network.Masked() || network.Bits() < bits.least || network.Bits() > bits.most {
			return fmt.Errorf("%s: %s must be an %s network of /%d to /%d without host bits, for example %s", flag,
				network, family, bits.least, bits.most, example)
		}
		if other, hit := overlapping(network, nobodys); hit {
			return fmt.Errorf("%s: %s overlaps %s, whose addresses are given to no Pod or Service", flag, network,
				other)
		}
	}
	return in.checkFree(flag, asked)
}

// nobodys are the loopback, link-local, multicast, mapped and unspecified addresses, which no Pod or Service can
// have.
var nobodys = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"), netip.MustParsePrefix("::/8"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// rangeUse maps a flag to the use of its range.
var rangeUse = map[string]string{PodRangeFlag: "Pods", ServiceRangeFlag: "Services"}

func (in RangesInput) checkFree(what string, asked Range) error {
	for _, network := range asked.Networks() {
		whose := in.taken(network)
		if whose == "" {
			continue
		}
		if in.Given {
			return fmt.Errorf("the mesh has %s for %s, which overlaps %s: free it on this machine, the mesh keeps it",
				network, rangeUse[what], whose)
		}
		if in.Kept {
			return fmt.Errorf("%s: %s, which this data directory has used from its start, overlaps %s: end that, or "+
				"choose another data directory", what, network, whose)
		}
		return fmt.Errorf("%s: %s overlaps %s: name a free one", what, network, whose)
	}
	return nil
}

// taken describes what a network overlaps on the machine; empty if it is free.
func (in RangesInput) taken(prefix netip.Prefix) string {
	if claimed, hit := overlapping(prefix, in.Claimed); hit {
		return fmt.Sprintf("%s, which another mesh of this machine has", claimed)
	}
	if route, hit := overlapping(prefix, in.Routes); hit {
		return fmt.Sprintf("%s, which this machine routes already", route)
	}
	return ""
}

// pickRange returns the first free candidate of each family; the families are chosen independently.
func (in RangesInput) pickRange(flag string, candidates []Range, other Range) (Range, error) {
	free := func(candidate netip.Prefix) bool {
		_, hit := overlapping(candidate, other.Networks())
		return !hit && in.taken(candidate) == ""
	}
	four := slices.IndexFunc(candidates, func(c Range) bool { return free(c.IPv4) })
	six := slices.IndexFunc(candidates, func(c Range) bool { return free(c.IPv6) })
	switch {
	case four < 0:
		return Range{}, fmt.Errorf("%s: every network that would be tried is routed by this machine or another "+
			"mesh's: name a free one", flag)
	case !in.dual():
		return Range{IPv4: candidates[four].IPv4}, nil
	case six < 0:
		return Range{}, fmt.Errorf("%s: every network of IPv6 that would be tried is routed by this machine or "+
			"another mesh's: name a free one", flag)
	}
	return Range{candidates[four].IPv4, candidates[six].IPv6}, nil
}

func overlapping(prefix netip.Prefix, routes []netip.Prefix) (netip.Prefix, bool) {
	for _, route := range routes {
		if route.Bits() > 0 && prefix.Overlaps(route) {
			return route, true
		}
	}
	return netip.Prefix{}, false
}

// candidates returns 10.N.0.0/16 and fd00:10:N:: with the given length, for the numbers first and second and then
// from..to.
func candidates(lengthIPv6 string, first, second, from, to byte) []Range {
	numbers := []byte{first, second}
	for i := from; i <= to; i++ {
		numbers = append(numbers, i)
	}
	var all []Range
	for _, i := range numbers {
		all = append(all, Range{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, i, 0, 0}), 16),
			netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::%s", i, lengthIPv6))})
	}
	return all
}
