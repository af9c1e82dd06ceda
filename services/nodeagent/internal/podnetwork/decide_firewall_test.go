package podnetwork

import (
	"fmt"
	"slices"
	"testing"
)

func TestFirewallOf(t *testing.T) {
	config := Config{CNI: CNI{Bridge: "keel0"}, VXLANID: 75, Cluster: prefixes("10.244.0.0/16", "fd00::/48")}
	own, other := at("n1", "10.244.1.0/24", "192.0.2.9"), at("n2", "10.244.2.0/24", "192.0.2.1")
	twice := at("n3", "10.244.3.0/24", "192.0.2.1")
	routed := firewallOf(config, Plan{}, own, []Node{other})
	if routed.VXLANID != 0 || len(routed.Nodes) != 0 || routed.Table != Table("keel0") || routed.Bridge != "keel0" ||
		!slices.Equal(routed.Own, own.Ranges) || !slices.Equal(routed.Cluster, config.Cluster) {
		t.Errorf("without a tunnel it is %+v", routed)
	}
	tunnelled := firewallOf(config, Plan{Tunnel: newTunnel(own)}, own, []Node{other, twice})
	if got := fmt.Sprint(tunnelled.VXLANID, tunnelled.Nodes); got != "75 [192.0.2.1 192.0.2.9]" {
		t.Errorf("with a tunnel there are %s", got)
	}
	if routed.equal(tunnelled) || !routed.equal(firewallOf(config, Plan{}, own, nil)) {
		t.Error("other nodes matter without a tunnel, or do not with one")
	}
}

func TestFirewallOfAFamily(t *testing.T) {
	for name, row := range map[string]struct {
		firewall    Firewall
		four, six   string
		needs, also bool
	}{
		"IPv4 alone": {Firewall{Own: prefixes("10.244.1.0/24")}, "[10.244.1.0/24]", "[fe80::/10 ::/128]", true, false},
		"both": {Firewall{Own: prefixes("10.244.1.0/24", "fd00:0:0:1::/64")}, "[10.244.1.0/24]",
			"[fd00:0:0:1::/64 fe80::/10 ::/128]", true, true},
		"nodes of IPv6": {Firewall{Own: prefixes("10.244.1.0/24"), Nodes: at("n", "fd01::1").Addresses},
			"[10.244.1.0/24]", "[fe80::/10 ::/128]", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := row.firewall
			if four, six := fmt.Sprint(
				f.sources(false),
			), fmt.Sprint(
				f.sources(true),
			); four != row.four ||
				six != row.six {
				t.Errorf("Pods send from %s and %s, want %s and %s", four, six, row.four, row.six)
			}
			if f.needs(false) != row.needs || f.needs(true) != row.also {
				t.Errorf("tables: %v and %v, want %v and %v", f.needs(false), f.needs(true), row.needs, row.also)
			}
		})
	}
}
