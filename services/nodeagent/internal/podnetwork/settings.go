package podnetwork

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/spf13/pflag"
)

// Settings are the flags of the Pods' network.
type Settings struct {
	Mode string
	// ClusterCIDRs are the ranges of all Pods.
	ClusterCIDRs []string
	ConfigDir    string
	Bridge       string
	PortTable    string
	// VXLANID distinguishes this network's packets from those of other networks.
	VXLANID int
}

// DefaultSettings returns the settings of a node without flags.
func DefaultSettings() Settings {
	return Settings{Mode: string(None), ConfigDir: "/etc/cni/net.d", Bridge: "keelson0", PortTable: "keelson-ports",
		VXLANID: 75}
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.Mode, "pod-network", s.Mode,
		"how Pods of different nodes reach each other: routes, where all nodes "+
			"are on one segment; vxlan, wherever they are; none leaves the Pods' network to others")
	fs.StringSliceVar(&s.ClusterCIDRs, "cluster-cidr", nil, "range of all Pods, or one of each address family, "+
		"comma-separated: what goes beyond it leaves under the node's address, of IPv6 where it is of fc00::/7")
	fs.StringVar(&s.ConfigDir, "cni-config-dir", s.ConfigDir,
		"where the container runtime looks for the configuration of the network plugins")
	fs.StringVar(&s.Bridge, "pod-bridge", s.Bridge,
		"name of the bridge of this node's Pods; no two nodeagents of a machine may share it")
	fs.StringVar(&s.PortTable, "host-port-table", s.PortTable,
		"firewall table of the plugin keelson-hostport; empty leaves the plugin out")
	fs.IntVar(&s.VXLANID, "vxlan-id", s.VXLANID,
		"number of the network of --pod-network=vxlan, the same on all nodes; no two clusters of a machine may share "+
			"it")
}

// maxVXLANID is the largest number that fits in a packet's header.
const maxVXLANID = 1<<24 - 1

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	switch Mode(s.Mode) {
	case None:
		return nil
	case Routes, VXLAN:
	default:
		return fmt.Errorf("--pod-network: %q must be routes, vxlan or none", s.Mode)
	}
	if len(s.ClusterCIDRs) == 0 || len(s.ClusterCIDRs) > 2 {
		return fmt.Errorf("--cluster-cidr: --pod-network=%s needs one or two ranges, not %d", s.Mode,
			len(s.ClusterCIDRs))
	}
	if _, err := s.Cluster(); err != nil {
		return err
	}
	if !filepath.IsAbs(s.ConfigDir) {
		return fmt.Errorf("--cni-config-dir: %q must be an absolute path", s.ConfigDir)
	}
	if s.Bridge == "" || len(s.Bridge) >= maxLinkName {
		return fmt.Errorf("--pod-bridge: %q must be 1 to %d characters long", s.Bridge, maxLinkName-1)
	}
	if s.VXLANID < 1 || s.VXLANID > maxVXLANID {
		return fmt.Errorf("--vxlan-id: %d must be from 1 to %d", s.VXLANID, maxVXLANID)
	}
	return nil
}

// Cluster returns the ranges of all Pods.
func (s *Settings) Cluster() ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range s.ClusterCIDRs {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix != prefix.Masked() {
			return nil, fmt.Errorf("--cluster-cidr: %q must be a network without host bits, for example 10.244.0.0/16",
				text)
		}
		ranges = append(ranges, prefix)
	}
	return ranges, nil
}
