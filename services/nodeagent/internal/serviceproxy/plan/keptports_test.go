package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/keptport"
	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

// No Service gets, by an address that it names, what nodes need or what Pods and other Services have. The cluster
// assigns node ports.
func TestKeys(t *testing.T) {
	const cluster = "10.96.0.50:%d/6 internal"
	node := testNode
	node.ClusterRanges = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.96.0.0/16")}
	for _, text := range []string{"6443/tcp=apiserver", "192.0.2.1:10250/tcp=nodeagent",
		"127.0.0.1:20001/tcp=scheduler"} {
		kept, err := keptport.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		node.KeptPorts = append(node.KeptPorts, kept)
	}
	node.KeptPorts = append(node.KeptPorts, keptport.Port{Keeper: "api", Protocol: keptport.TCP, First: 443, Last: 443,
		Address: netip.MustParseAddr("192.0.2.7"), Elsewhere: true})
	node.KeptPorts = append(node.KeptPorts, keptport.NodePorts()...)
	peers := &Peers{}
	peers.Set(servicetest.NodeAt("here", 10250, testNode.Addresses[0].String()))
	peers.Set(servicetest.NodeAt("there", 10251, "192.0.2.2"))
	peers.Set(servicetest.NodeAt("control", 10250, "192.0.2.9", "192.0.2.10"))
	api := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.9:7443"),
		netip.MustParseAddrPort("192.0.2.8:7443")}
	named := func(address string, port int32) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.ExternalIPs, s.Spec.Ports[0].Port = []string{address}, port
		}
	}
	given := func(address string, port int32) func(*corev1.Service) {
		return func(s *corev1.Service) {
			servicetest.Balanced(address)(s)
			s.Spec.Ports[0].Port = port
		}
	}
	for _, r := range []struct {
		name    string
		change  func(*corev1.Service)
		got     string
		problem string
	}{
		{"a port of the node that is free", named("192.0.2.1", 80), "192.0.2.1:80/6 external", ""},
		{"the API server's", named("192.0.2.1", 6443), "", "192.0.2.1:6443 is kept for apiserver of this node"},
		{"the agent's", named("192.0.2.1", 10250), "", "192.0.2.1:10250 is kept for nodeagent of this node"},
		{"what is kept at the loopback address", named("192.0.2.1", 20001), "192.0.2.1:20001/6 external", ""},
		{"another port of the API server", named("192.0.2.7", 444), "192.0.2.7:444/6 external", ""},
		{"the API server elsewhere", named("192.0.2.7", 443), "", "192.0.2.7:443 is kept for api of this node"},
		{"a node port", named("192.0.2.1", 30080), "", "192.0.2.1:30080 is kept for node-ports of this node"},
		{"the agent of another node", named("192.0.2.2", 10251), "",
			"192.0.2.2:10251 is where the agent of node there is asked"},
		{"what another node has like this one", named("192.0.2.2", 6443), "",
			"192.0.2.2:6443 is kept for apiserver of node there"},
		{"what only this one reaches of itself", named("192.0.2.2", 20001), "192.0.2.2:20001/6 external", ""},
		{"what is one API server's", named("192.0.2.2", 443), "192.0.2.2:443/6 external", ""},
		{"a node port of another", named("192.0.2.2", 32767), "",
			"192.0.2.2:32767 is kept for node-ports of node there"},
		{"an address of nobody", named("192.0.2.3", 6443), "192.0.2.3:6443/6 external", ""},
		{"where the API server is reached", named("192.0.2.9", 7443), "",
			"192.0.2.9:7443 is where the API server is reached"},
		{"the same where no node is", named("192.0.2.8", 7443), "",
			"192.0.2.8:7443 is where the API server is reached"},
		{"another address of its machine", named("192.0.2.10", 7443), "",
			"192.0.2.10:7443 is where the API server is reached"},
		{"its port of another machine", named("192.0.2.2", 7443), "192.0.2.2:7443/6 external", ""},
		{"another port of its machine", named("192.0.2.9", 7444), "192.0.2.9:7444/6 external", ""},
		{"a load balancer's, of the API server", given("192.0.2.9", 7443), "",
			"192.0.2.9:7443 is where the API server is reached"},
		{"a Pod's address", named("10.244.7.7", 80), "",
			"spec.externalIPs: 10.244.7.7 is of 10.244.0.0/16, the range of Pods or Services"},
		{"a Service's address", named("10.96.0.10", 53), "",
			"spec.externalIPs: 10.96.0.10 is of 10.96.0.0/16, the range of Pods or Services"},
		{"a load balancer's, of the agent", given("192.0.2.1", 10250), "",
			"192.0.2.1:10250 is kept for nodeagent of this node"},
		{"a load balancer's, that a node claims", given("192.0.2.2", 10251), "192.0.2.2:10251/6 external", ""},
		{"the node port that it was given", func(s *corev1.Service) {
			servicetest.WithNodePorts(s)
			s.Spec.Ports[0].Port = 80
		}, "192.0.2.1:30080/6 external", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := servicetest.New(r.change)
			plan := Decide(Input{Service: s, Node: node, Peers: peers, APIServers: api})
			want := []string{fmt.Sprintf(cluster, s.Spec.Ports[0].Port)}
			if r.got != "" {
				want = append(want, r.got)
			}
			if got := frontendWords(plan); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			problem := ""
			if r.problem != "" {
				problem = r.problem + "; it is left out"
			}
			if got := strings.Join(plan.Problems, "\n"); got != problem {
				t.Errorf("%q, want %q", got, problem)
			}
		})
	}
	overUDP := func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }
	udp := servicetest.New(named("192.0.2.2", 10251), overUDP)
	if got := Decide(Input{Service: udp, Node: node, Peers: peers}).Problems; len(got) > 0 {
		t.Errorf("the agent's number of UDP: %q", got)
	}
	udp = servicetest.New(named("192.0.2.9", 7443), overUDP)
	if got := Decide(Input{Service: udp, Node: node, APIServers: api}).Problems; len(got) > 0 {
		t.Errorf("the API server's number of UDP: %q", got)
	}
	other := servicetest.New(named("192.0.2.10", 7443))
	if got := Decide(Input{Service: other, Node: node, APIServers: api}).Problems; len(got) > 0 {
		t.Errorf("another address, of nobody as far as one knows: %q", got)
	}
	if got := Decide(Input{Service: servicetest.New(named("192.0.2.2", 10251)), Node: node}).Problems; len(got) > 0 {
		t.Errorf("without peers: %q", got)
	}
}

// Each Node has what it reported last, and Set reports changes.
func TestPeers(t *testing.T) {
	p := &Peers{}
	at := func(want string) {
		t.Helper()
		name, is := p.At(netip.MustParseAddr("192.0.2.1"))
		if name != want || is != (want != "") || p.agentAt(netip.MustParseAddrPort("192.0.2.1:10250")) != want {
			t.Errorf("%q, want %q", name, want)
		}
	}
	at("")
	p.Remove(servicetest.NodeAt("a", 10250, "192.0.2.1"))
	if !p.Set(servicetest.NodeAt("b", 10250, "192.0.2.1", "::ffff:192.0.2.1", "name")) ||
		p.Set(servicetest.NodeAt("b", 10250, "192.0.2.1")) {
		t.Error("a Node is no news, or what it said is")
	}
	at("b")
	if !p.Set(servicetest.NodeAt("a", 10250, "192.0.2.1")) {
		t.Error("another Node is no news")
	}
	at("a")
	if !p.Set(servicetest.NodeAt("a", 9, "192.0.2.1")) || p.agentAt(netip.MustParseAddrPort("192.0.2.1:10250")) != "b" {
		t.Error("another port is no news, or hides the agent of the other node")
	}
	p.Remove(servicetest.NodeAt("a", 9))
	at("b")
	if !p.Set(servicetest.NodeAt("b", 10250, "192.0.2.2")) {
		t.Error("another address is no news")
	}
	at("")
}
