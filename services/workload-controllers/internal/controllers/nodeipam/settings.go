package nodeipam

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
)

const (
	defaultMaskIPv4 = 24
	defaultMaskIPv6 = 64
	// maxSlotBits bounds the number of shares of a cluster range: 65,536 for each family.
	maxSlotBits = 16
)

// Settings are the flags of the controller. Without a range it does not exist.
type Settings struct {
	// ClusterCIDRs are the ranges from which nodes get their shares, at most one for each family.
	ClusterCIDRs []string
	// MaskSize, MaskSizeIPv4 and MaskSizeIPv6 are the prefix lengths of the nodes' ranges; 0 means the default.
	MaskSize, MaskSizeIPv4, MaskSizeIPv6 int
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&s.ClusterCIDRs, "cluster-cidr", nil, "range of all Pods, of which each node gets its share, or "+
		"one of each address family, comma-separated; without it nodes are given no range")
	fs.IntVar(&s.MaskSize, "node-cidr-mask-size", 0, fmt.Sprintf("prefix length of a node's share, where "+
		"--cluster-cidr is one range; 0 means %d for IPv4 and %d for IPv6", defaultMaskIPv4, defaultMaskIPv6))
	fs.IntVar(&s.MaskSizeIPv4, "node-cidr-mask-size-ipv4", 0,
		fmt.Sprintf("prefix length of a node's IPv4 share; 0 means %d", defaultMaskIPv4))
	fs.IntVar(&s.MaskSizeIPv6, "node-cidr-mask-size-ipv6", 0,
		fmt.Sprintf("prefix length of a node's IPv6 share; 0 means %d", defaultMaskIPv6))
}

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	_, err := s.pools()
	return err
}

// family is the limits of an address family.
type family struct {
	name, flag         string
	mask, preset, most int
}

// pools returns a pool for each cluster range, in the order of the flag.
func (s *Settings) pools() ([]*pool, error) {
	if len(s.ClusterCIDRs) > 2 {
		return nil, fmt.Errorf("--cluster-cidr: %s are %d ranges, at most one IPv4 and one IPv6 range are allowed",
			strings.Join(s.ClusterCIDRs, ","), len(s.ClusterCIDRs))
	}
	if len(s.ClusterCIDRs) == 2 && s.MaskSize != 0 {
		return nil, fmt.Errorf("--node-cidr-mask-size: with two ranges --node-cidr-mask-size-ipv4 and " +
			"--node-cidr-mask-size-ipv6 take its place")
	}
	var pools []*pool
	for _, text := range s.ClusterCIDRs {
		made, err := s.pool(text)
		if err != nil {
			return nil, err
		}
		if len(pools) > 0 && pools[0].cluster.Addr().Is4() == made.cluster.Addr().Is4() {
			return nil,
				fmt.Errorf("--cluster-cidr: %s are of one family, at most one IPv4 and one IPv6 range are allowed",
					strings.Join(s.ClusterCIDRs, ","))
		}
		pools = append(pools, made)
	}
	return pools, nil
}

func (s *Settings) pool(text string) (*pool, error) {
	cluster, err := netip.ParsePrefix(text)
	if err != nil || cluster != cluster.Masked() || cluster.Addr().Is4In6() {
		return nil, fmt.Errorf("--cluster-cidr: %q must be a network without host bits, for example 10.244.0.0/16",
			text)
	}
	of := family{"IPv4", "--node-cidr-mask-size-ipv4", s.MaskSizeIPv4, defaultMaskIPv4, 30}
	if cluster.Addr().Is6() {
		of = family{"IPv6", "--node-cidr-mask-size-ipv6", s.MaskSizeIPv6, defaultMaskIPv6, 126}
	}
	bits := of.preset
	switch {
	case of.mask != 0:
		bits = of.mask
	case s.MaskSize != 0:
		bits, of.flag = s.MaskSize, "--node-cidr-mask-size"
	}
	if most := min(cluster.Bits()+maxSlotBits, of.most); bits < cluster.Bits() || bits > most {
		return nil, fmt.Errorf("%s: %d must be between %d and %d for nodes' shares of the %s range %s", of.flag, bits,
			cluster.Bits(), most, of.name, cluster)
	}
	return newPool(cluster, bits), nil
}
