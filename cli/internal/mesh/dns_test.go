package mesh

import (
	"strings"
	"testing"

	"keelson.dev/cli/internal/state"
)

// Pods keep the settings with which they started, so a mesh keeps its network, DNS, domain and cgroup driver.
func TestSettingsAreDecidedOnce(t *testing.T) {
	for name, row := range map[string]struct {
		have    state.State
		asked   Options
		want    string
		refused string
	}{
		"a new mesh": {want: "routes nftables coredns cluster.local cgroupfs"},
		"asked for": {asked: Options{DNS: "none", Domain: "kube.local"},
			want: "routes nftables none kube.local cgroupfs"},
		"again": {have: state.State{DNS: "none", Domain: "kube.local"},
			want: "routes nftables none kube.local cgroupfs"},
		"the same": {have: state.State{DNS: "none"}, asked: Options{DNS: "none"},
			want: "routes nftables none cluster.local cgroupfs"},
		"an older mesh": {asked: Options{DNS: "none"}, want: "routes nftables none cluster.local cgroupfs"},
		"on systemd": {asked: Options{CgroupDriver: "systemd"},
			want: "routes nftables coredns cluster.local systemd"},
		"on systemd again": {have: state.State{CgroupDriver: "systemd"},
			want: "routes nftables coredns cluster.local systemd"},
		"another driver": {have: state.State{CgroupDriver: "cgroupfs"}, asked: Options{CgroupDriver: "systemd"},
			refused: "--cgroup-driver: this data directory has used cgroupfs from its start: leave the flag out"},
		"over VXLAN": {asked: Options{PodNetwork: "vxlan"},
			want: "vxlan nftables coredns cluster.local cgroupfs"},
		"again over VXLAN": {have: state.State{PodNetwork: "vxlan"},
			want: "vxlan nftables coredns cluster.local cgroupfs"},
		"over VXLAN from now on": {have: state.State{PodNetwork: "routes"}, asked: Options{PodNetwork: "vxlan"},
			refused: "--pod-network: this data directory has used routes from its start: leave the flag out"},
		"left to others": {asked: Options{PodNetwork: "none", ServiceProxy: "none"},
			want: "none none coredns cluster.local cgroupfs"},
		"left to others again": {have: state.State{PodNetwork: "none", ServiceProxy: "none"},
			want: "none none coredns cluster.local cgroupfs"},
		"left to others from now on": {have: state.State{ServiceProxy: "nftables"},
			asked:   Options{ServiceProxy: "none"},
			refused: "--service-proxy: this data directory has used nftables from its start: leave the flag out"},
		"another": {have: state.State{DNS: "coredns", Domain: "a"}, asked: Options{DNS: "none"},
			refused: "--dns: this data directory has used coredns from its start: leave the flag out"},
		"another domain": {have: state.State{DNS: "coredns", Domain: "a"}, asked: Options{Domain: "b"},
			refused: "--cluster-domain: this data directory has used a from its start"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Mesh{State: &row.have}
			err := m.decideSettings(row.asked)
			if row.refused != "" {
				if err == nil || !strings.Contains(err.Error(), row.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			s := m.State
			got := strings.Join([]string{s.PodNetwork, s.ServiceProxy, s.DNS, s.Domain, s.CgroupDriver}, " ")
			if err != nil || got != row.want {
				t.Errorf("got %s, %v; want %s", got, err, row.want)
			}
		})
	}
}

// CoreDNS needs a node to run on.
func TestWhoGetsDNS(t *testing.T) {
	node := []state.Node{{Name: "node-1"}}
	for _, row := range []struct {
		state state.State
		want  bool
	}{
		{state.State{DNS: "coredns", Nodes: node}, true},
		{state.State{DNS: "coredns"}, false},
		{state.State{DNS: "none", Nodes: node}, false},
		{state.State{DNS: "10.96.0.10", Nodes: node}, false},
	} {
		if got := (&Mesh{State: &row.state}).HasDNS(); got != row.want {
			t.Errorf("%+v: %t", row.state, got)
		}
	}
}
