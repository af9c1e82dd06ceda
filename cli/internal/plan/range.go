package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Range is an IPv4 network and, in a dual-stack mesh, also an IPv6 network.
type Range struct{ IPv4, IPv6 netip.Prefix }

// IsValid reports whether the range is set.
func (r Range) IsValid() bool { return r.IPv4.IsValid() }

// Dual reports whether the range has both families.
func (r Range) Dual() bool { return r.IPv6.IsValid() }

// Networks lists the networks of the range, IPv4 first.
func (r Range) Networks() []netip.Prefix {
	return slices.DeleteFunc([]netip.Prefix{r.IPv4, r.IPv6}, func(p netip.Prefix) bool { return !p.IsValid() })
}

// String returns the networks separated by commas, as the daemons' flags take them.
func (r Range) String() string {
	var texts []string
	for _, network := range r.Networks() {
		texts = append(texts, network.String())
	}
	return strings.Join(texts, ",")
}

// Contains reports whether an address is in the range.
func (r Range) Contains(address netip.Addr) bool {
	return r.IPv4.Contains(address) || r.IPv6.Contains(address)
}

// Holds reports whether a whole network is in the range.
func (r Range) Holds(part netip.Prefix) bool {
	return slices.ContainsFunc(r.Networks(), func(network netip.Prefix) bool {
		return network.Bits() <= part.Bits() && network.Contains(part.Addr())
	})
}

// MarshalText implements encoding.TextMarshaler.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Range) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRange(string(text))
	return err
}

// Examples of valid ranges.
const (
	exampleIPv4 = "10.244.0.0/16"
	exampleDual = exampleIPv4 + ",fd00:10:244::/56"
)

// ParseRange parses one IPv4 network, or one network of each family, IPv4 first. An empty text is the zero Range.
func ParseRange(text string) (Range, error) {
	if text == "" {
		return Range{}, nil
	}
	var networks []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return Range{}, fmt.Errorf("%q must be an IPv4 network such as %s, or one of each family such as %s", part,
				exampleIPv4, exampleDual)
		}
		networks = append(networks, network)
	}
	if len(networks) > 2 {
		return Range{}, fmt.Errorf("%s are %d networks: give one of IPv4, or one of each family", text, len(networks))
	}
	first := networks[0]
	if len(networks) == 1 {
		if first.Addr().Is6() {
			return Range{}, fmt.Errorf("%s is of IPv6, which a mesh has only beside IPv4: give IPV4,%[1]s, for "+
				"example %s", first, exampleDual)
		}
		return Range{IPv4: first}, nil
	}
	second := networks[1]
	switch {
	case first.Addr().Is4() == second.Addr().Is4():
		return Range{}, fmt.Errorf("%s and %s are of one family: give one of IPv4, or one of each family", first,
			second)
	case first.Addr().Is6():
		return Range{}, fmt.Errorf("%s comes first, and the first family of a mesh is IPv4: give %s,%[1]s", first,
			second)
	}
	return Range{IPv4: first, IPv6: second}, nil
}
