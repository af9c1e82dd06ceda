package nodeipam

import (
	"fmt"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	for _, row := range []struct {
		settings Settings
		want     string // the first share of each range, or the beginning of the message
	}{
		{Settings{}, "[]"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16"}}, "[10.244.0.0/24]"},
		{Settings{ClusterCIDRs: []string{"fd00::/48"}}, "[fd00::/64]"},
		{Settings{ClusterCIDRs: []string{"fd00::/48", "10.244.0.0/16"}}, "[fd00::/64 10.244.0.0/24]"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16"}, MaskSize: 26}, "[10.244.0.0/26]"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16"}, MaskSizeIPv4: 26, MaskSize: 28}, "[10.244.0.0/26]"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16", "fd00::/56"}, MaskSizeIPv4: 26, MaskSizeIPv6: 72},
			"[10.244.0.0/26 fd00::/72]"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/24"}}, "[10.244.0.0/24]"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/25"}},
			"--node-cidr-mask-size-ipv4: 24 must be between 25 and 30 for nodes' shares of the IPv4 range " +
				"10.244.0.0/25"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16"}, MaskSize: 30}, "[10.244.0.0/30]"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16"}, MaskSize: 31},
			"--node-cidr-mask-size: 31 must be between 16 and 30"},
		{Settings{ClusterCIDRs: []string{"10.0.0.0/8"}}, "[10.0.0.0/24]"},
		{Settings{ClusterCIDRs: []string{"10.0.0.0/8"}, MaskSize: 25},
			"--node-cidr-mask-size: 25 must be between 8 and 24"},
		{Settings{ClusterCIDRs: []string{"fd00::/112"}, MaskSizeIPv6: 126}, "[fd00::/126]"},
		{Settings{ClusterCIDRs: []string{"fd00::/112"}, MaskSizeIPv6: 127},
			"--node-cidr-mask-size-ipv6: 127 must be between 112 and 126"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16", "10.1.0.0/16"}},
			"--cluster-cidr: 10.244.0.0/16,10.1.0.0/16 are of one family"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16", "fd00::/48", "fd01::/48"}},
			"--cluster-cidr: 10.244.0.0/16,f"},
		{Settings{ClusterCIDRs: []string{"10.244.0.0/16", "fd00::/48"}, MaskSize: 24},
			"--node-cidr-mask-size: with two"},
		{Settings{ClusterCIDRs: []string{"10.244.1.0/16"}}, `--cluster-cidr: "10.244.1.0/16" must be a network`},
		{Settings{ClusterCIDRs: []string{"::ffff:10.244.0.0/112"}}, `--cluster-cidr: "::ffff:10.244.0.0/112" must be`},
		{Settings{ClusterCIDRs: []string{"pods"}}, `--cluster-cidr: "pods" must be a network without host bits`},
		{Settings{ClusterCIDRs: []string{""}}, `--cluster-cidr: "" must be a network without host bits`},
	} {
		pools, err := row.settings.pools()
		var shares []string
		for _, p := range pools {
			shares = append(shares, p.offer().String())
		}
		got := fmt.Sprint(shares)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, row.want) || strings.Contains(got, "\n") {
			t.Errorf("%+v: %q, want %q", row.settings, got, row.want)
		}
	}
}
