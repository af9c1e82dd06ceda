package app

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/keptport"
)

// A Node's addresses and ranges are passed to the proxy, and the cluster's ranges from the flags.
func TestProxyNode(t *testing.T) {
	node := &corev1.Node{}
	node.Spec.PodCIDRs = []string{"10.244.1.0/24", "nonsense"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"},
		{Type: corev1.NodeHostName, Address: "192.0.2.9"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"}}
	c := Config{ServiceRanges: []string{"10.96.0.0/16", "fd00:96::/112"}}
	c.PodNetwork.ClusterCIDRs = []string{"10.244.0.0/16"}
	got := proxyNode(node, keptport.NodePorts(), c.clusterRanges())
	if fmt.Sprint(got.Addresses, got.PodRanges, got.ClusterRanges) !=
		"[192.0.2.1 2001:db8::1] [10.244.1.0/24] [10.244.0.0/16 10.96.0.0/16 fd00:96::/112]" ||
		!slices.Equal(got.KeptPorts, keptport.NodePorts()) {
		t.Errorf("%+v", got)
	}
}

// SET-149: the node keeps the ports at which it is asked and those that it asks, in every notation.
func TestDecideKept(t *testing.T) {
	const always = "30000-32767/tcp=node-ports 30000-32767/udp=node-ports 30000-32767/sctp=node-ports"
	named, err := keptport.Parse("127.0.0.1:20001/tcp=scheduler")
	if err != nil {
		t.Fatal(err)
	}
	ips := []string{"192.0.2.1", "2001:db8::1"}
	for _, r := range []struct {
		name string
		in   keptInput
		want string
		// elsewhere is whether the API server is on another machine.
		elsewhere bool
	}{
		{"nothing", keptInput{}, "", false},
		{"what is named", keptInput{Named: []keptport.Port{named}}, "127.0.0.1:20001/tcp=scheduler ", false},
		{"the node API everywhere", keptInput{Bind: "0.0.0.0", Port: 10250}, "10250/tcp=nodeagent ", false},
		{"the node API at an address", keptInput{Bind: "2001:db8::1", Port: 10250},
			"[2001:db8::1]:10250/tcp=nodeagent ", false},
		{"no node API", keptInput{Bind: "0.0.0.0"}, "", false},
		{"health everywhere", keptInput{Health: ":10256"}, "10256/tcp=service-health ", false},
		{"health at an address", keptInput{Health: "[2001:db8::1]:9"}, "[2001:db8::1]:9/tcp=service-health ", false},
		{"the tunnel", keptInput{Tunnel: true}, "4789/udp=vxlan ", false},
		{"names that the machine itself answers for", keptInput{Resolvers: []string{"127.0.0.53", "192.0.2.53", "x"}},
			"127.0.0.53:53/udp=dns 127.0.0.53:53/tcp=dns ", false},
		{"the API server elsewhere", keptInput{API: "https://192.0.2.7:6443", NodeIPs: ips},
			"192.0.2.7:6443/tcp=apiserver ", true},
		{"with a path", keptInput{API: "https://192.0.2.7:6443/api", NodeIPs: ips},
			"192.0.2.7:6443/tcp=apiserver ", true},
		{"over IPv6", keptInput{API: "https://[2001:db8::7]:6443", NodeIPs: ips},
			"[2001:db8::7]:6443/tcp=apiserver ", true},
		{"without a port", keptInput{API: "https://192.0.2.7"}, "192.0.2.7:443/tcp=apiserver ", true},
		{"without TLS", keptInput{API: "http://192.0.2.7"}, "192.0.2.7:80/tcp=apiserver ", true},
		{"without a scheme", keptInput{API: "192.0.2.7:6443"}, "192.0.2.7:6443/tcp=apiserver ", true},
		{"by a name", keptInput{API: "https://api.example.com"}, "", false},
		{"at no port", keptInput{API: "https://192.0.2.7:66000"}, "", false},
		{"on this machine", keptInput{API: "https://127.0.0.1:6443"}, "6443/tcp=apiserver ", false},
		{"at the node's address", keptInput{API: "https://192.0.2.1:6443", NodeIPs: ips}, "6443/tcp=apiserver ", false},
	} {
		t.Run(r.name, func(t *testing.T) {
			kept := decideKept(r.in)
			if got := fmt.Sprint(kept); got != "["+r.want+always+"]" {
				t.Errorf("%s, want [%s%s]", got, r.want, always)
			}
			if slices.ContainsFunc(kept, func(p keptport.Port) bool { return p.Elsewhere }) != r.elsewhere {
				t.Errorf("%+v", kept)
			}
		})
	}
	if ips := []netip.Addr{netip.MustParseAddr("192.0.2.1")}; decideKept(keptInput{})[0].Refuses(ips[0], "TCP", 29999) {
		t.Error("a port before the node ports is kept")
	}
}
