package serviceproxy

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var testNode = Node{Name: "here", Zone: "z1", Addresses: []netip.Addr{nodeIP, nodeIP6},
	PodRanges: []netip.Prefix{podRange, range6}}

// one is a Service of one IPv4 port.
func one(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.50",
		ClusterIPs: []string{"10.96.0.50"},
		Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}}
	for _, c := range change {
		c(s)
	}
	return s
}

// endpoint is an endpoint in words: address, then any of "here", "there", "unready", "draining", "ended",
// "node:NAME", "zone:NAME".
func endpoint(words string) discoveryv1.Endpoint {
	fields := strings.Fields(words)
	e := discoveryv1.Endpoint{Addresses: fields[:1]}
	hints := func() *discoveryv1.EndpointHints {
		if e.Hints == nil {
			e.Hints = &discoveryv1.EndpointHints{}
		}
		return e.Hints
	}
	for _, word := range fields[1:] {
		kind, name, _ := strings.Cut(word, ":")
		switch kind {
		case "here", "there":
			e.NodeName = new(kind)
		case "ready":
			e.Conditions.Ready, e.Conditions.Serving = new(true), new(true)
		case "unready":
			e.Conditions.Ready, e.Conditions.Serving = new(false), new(false)
		case "draining":
			e.Conditions.Ready, e.Conditions.Terminating = new(false), new(true)
		case "ended":
			e.Conditions.Ready, e.Conditions.Serving, e.Conditions.Terminating = new(false), new(false), new(true)
		case "node":
			hints().ForNodes = append(hints().ForNodes, discoveryv1.ForNode{Name: name})
		case "zone":
			hints().ForZones = append(hints().ForZones, discoveryv1.ForZone{Name: name})
		}
	}
	return e
}

func slice(kind discoveryv1.AddressType, port int32, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: kind, ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(port)}}}
	for _, e := range endpoints {
		s.Endpoints = append(s.Endpoints, endpoint(e))
	}
	return s
}

func decide(s *corev1.Service, all ...*discoveryv1.EndpointSlice) Plan {
	return Decide(Input{Service: s, Slices: all, Node: testNode})
}

func texts(all []netip.AddrPort) string {
	var out []string
	for _, e := range all {
		out = append(out, strings.TrimSuffix(e.String(), ":8080"))
	}
	return strings.Join(out, " ")
}

// Which endpoints connections go to, to any node and to this one only.
func TestEndpoints(t *testing.T) {
	for _, r := range []struct {
		name           string
		endpoints      string
		cluster, local string
	}{
		{"none", "", "", ""},
		{"unknown conditions are good", "10.0.0.1 here; 10.0.0.2 there", "10.0.0.1 10.0.0.2", "10.0.0.1"},
		{"ready", "10.0.0.1 here ready; 10.0.0.2 there ready", "10.0.0.1 10.0.0.2", "10.0.0.1"},
		{"unready", "10.0.0.1 here unready; 10.0.0.2 there", "10.0.0.2", ""},
		{"all unready", "10.0.0.1 here unready", "", ""},
		{"draining beside ready", "10.0.0.1 here draining; 10.0.0.2 there", "10.0.0.2", "10.0.0.1"},
		{"draining beside ready on this node", "10.0.0.1 here draining; 10.0.0.2 here", "10.0.0.2", "10.0.0.2"},
		{"all draining", "10.0.0.1 here draining; 10.0.0.2 there draining", "10.0.0.1 10.0.0.2", "10.0.0.1"},
		{"draining without serving", "10.0.0.1 here ended; 10.0.0.2 there ended", "", ""},
		{"no node", "10.0.0.1", "10.0.0.1", ""},
		{"named twice", "10.0.0.1 here; 10.0.0.1 here", "10.0.0.1", "10.0.0.1"},
		{"named twice, ready once", "10.0.0.1 here draining; 10.0.0.1 here", "10.0.0.1", "10.0.0.1"},
		{"zones", "10.0.0.1 there zone:z1; 10.0.0.2 there zone:z2; 10.0.0.3 there zone:z2 zone:z1", "10.0.0.1 10.0.0.3",
			""},
		{"one without a zone", "10.0.0.1 there zone:z1; 10.0.0.2 there", "10.0.0.1 10.0.0.2", ""},
		{"no zone of this node", "10.0.0.1 there zone:z2; 10.0.0.2 there zone:z3", "10.0.0.1 10.0.0.2", ""},
		{"unready without a zone", "10.0.0.1 there zone:z1; 10.0.0.2 unready; 10.0.0.3 zone:z2", "10.0.0.1", ""},
		{"a zone that has only unready ones", "10.0.0.1 unready zone:z1; 10.0.0.3 zone:z2", "10.0.0.3", ""},
		{"nodes", "10.0.0.1 here node:here zone:z1; 10.0.0.2 there node:there zone:z1", "10.0.0.1", "10.0.0.1"},
		{"no node's own", "10.0.0.1 there node:there zone:z1; 10.0.0.2 there node:there zone:z2", "10.0.0.1", ""},
		{"one without a node", "10.0.0.1 here node:here zone:z1; 10.0.0.2 there zone:z1", "10.0.0.1 10.0.0.2",
			"10.0.0.1"},
		{"local ignores hints", "10.0.0.1 here zone:z2; 10.0.0.2 there zone:z1", "10.0.0.2", "10.0.0.1"},
		{"draining ignores hints", "10.0.0.1 draining zone:z1; 10.0.0.2 draining zone:z2", "10.0.0.1 10.0.0.2", ""},
	} {
		var words []string
		for _, e := range strings.Split(r.endpoints, ";") {
			if strings.TrimSpace(e) != "" {
				words = append(words, e)
			}
		}
		p := decide(one(), slice(discoveryv1.AddressTypeIPv4, 8080, words...)).Ports[0]
		if got := texts(p.Cluster); got != r.cluster {
			t.Errorf("%s: everywhere %q, want %q", r.name, got, r.cluster)
		}
		if got := texts(p.Local); got != r.local {
			t.Errorf("%s: here %q, want %q", r.name, got, r.local)
		}
	}
}

// A Pod may reach itself where an endpoint is on this node, and where nobody says on which node it is.
func TestHairpins(t *testing.T) {
	for endpoint, want := range map[string]int{"10.0.0.1 here": 1, "10.0.0.1": 1, "10.0.0.1 there": 0,
		"10.0.0.1 here draining": 1, "10.0.0.1 unready": 0} {
		got := decide(one(), slice(discoveryv1.AddressTypeIPv4, 8080, endpoint, "10.0.0.2 there"))
		if len(got.Hairpins) != want {
			t.Errorf("%q: hairpins %v, want %d", endpoint, got.Hairpins, want)
		}
	}
}

// frontends in words: address:port/protocol, class, and "guarded".
func frontendWords(p Plan) []string {
	classes := map[Class]string{Internal: "internal", InternalLocal: "internal-local", External: "external",
		ExternalLocal: "external-local"}
	var out []string
	for _, port := range p.Ports {
		for _, f := range port.Frontends {
			words := fmt.Sprintf("%s/%d %s", netip.AddrPortFrom(f.Addr, f.Port), f.Protocol, classes[f.Class])
			if f.Guarded {
				words += " guarded"
			}
			out = append(out, words)
		}
	}
	return out
}

func balanced(ips ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		for _, ip := range ips {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
	}
}

func localTraffic(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

// Where a Service is reached, and in which way.
func TestFrontends(t *testing.T) {
	const cluster = "10.96.0.50:80/6 internal"
	for _, r := range []struct {
		name   string
		change func(*corev1.Service)
		want   []string
	}{
		{"ClusterIP", func(*corev1.Service) {}, []string{cluster}},
		{"another proxy's", func(s *corev1.Service) {
			s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "x"}
		}, nil},
		{"labelled headless", func(s *corev1.Service) {
			s.Labels = map[string]string{"service.kubernetes.io/headless": ""}
		}, nil},
		{"headless", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"}
		}, nil},
		{"without an address", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil }, nil},
		{"ExternalName", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }, nil},
		{"clusterIP alone", func(s *corev1.Service) { s.Spec.ClusterIPs = nil }, []string{cluster}},
		{"UDP", func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "UDP" }, []string{"10.96.0.50:80/17 internal"}},
		{"SCTP", func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "SCTP" }, []string{"10.96.0.50:80/132 internal"}},
		{"no protocol", func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "" }, []string{cluster}},
		{"unknown protocol", func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "DCCP" }, nil},
		{"port 0", func(s *corev1.Service) { s.Spec.Ports[0].Port = 0 }, nil},
		{"port 65536", func(s *corev1.Service) { s.Spec.Ports[0].Port = 65536 }, nil},
		{"port 65535", func(s *corev1.Service) { s.Spec.Ports[0].Port = 65535 },
			[]string{"10.96.0.50:65535/6 internal"}},
		{"both families", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.50", "fd00:96::50"} },
			[]string{cluster, "[fd00:96::50]:80/6 internal"}},
		{"inside to this node", func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}, []string{"10.96.0.50:80/6 internal-local"}},
		{"node port", withNodePorts, []string{cluster, "192.0.2.1:30080/6 external"}},
		{"node port of both families", func(s *corev1.Service) {
			withNodePorts(s)
			s.Spec.ClusterIPs = []string{"10.96.0.50", "fd00:96::50"}
		}, []string{cluster, "192.0.2.1:30080/6 external", "[fd00:96::50]:80/6 internal",
			"[2001:db8:1::1]:30080/6 external"}},
		{"node port of a ClusterIP Service", func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30080 },
			[]string{cluster}},
		{"load balancer", balanced("203.0.113.1", "203.0.113.2"),
			[]string{cluster, "203.0.113.1:80/6 external", "203.0.113.2:80/6 external"}},
		{"load balancer that is a proxy", func(s *corev1.Service) {
			balanced("203.0.113.1")(s)
			s.Status.LoadBalancer.Ingress[0].IPMode = new(corev1.LoadBalancerIPModeProxy)
		}, []string{cluster}},
		{"load balancer by its address", func(s *corev1.Service) {
			balanced("203.0.113.1")(s)
			s.Status.LoadBalancer.Ingress[0].IPMode = new(corev1.LoadBalancerIPModeVIP)
		}, []string{cluster, "203.0.113.1:80/6 external"}},
		{"load balancer by name", func(s *corev1.Service) {
			balanced("")(s)
			s.Status.LoadBalancer.Ingress[0].Hostname = "lb.example"
		}, []string{cluster}},
		{"outside to this node", func(s *corev1.Service) {
			balanced("203.0.113.1")(s)
			withNodePorts(s)
			s.Spec.Type, s.Spec.ExternalIPs = corev1.ServiceTypeLoadBalancer, []string{"198.51.100.9"}
			localTraffic(s)
		}, []string{cluster, "192.0.2.1:30080/6 external-local", "203.0.113.1:80/6 external-local",
			"198.51.100.9:80/6 external-local"}},
		{"sources", func(s *corev1.Service) {
			balanced("203.0.113.1")(s)
			s.Spec.LoadBalancerSourceRanges, s.Spec.ExternalIPs = []string{"192.0.2.0/24"}, []string{"198.51.100.9"}
		}, []string{cluster, "203.0.113.1:80/6 external guarded", "198.51.100.9:80/6 external"}},
		{"sources that are none", func(s *corev1.Service) {
			balanced("203.0.113.1")(s)
			s.Spec.LoadBalancerSourceRanges = []string{"everybody"}
		}, []string{cluster, "203.0.113.1:80/6 external guarded"}},
		{"an address twice", func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"10.96.0.50", "198.51.100.9", "198.51.100.9", "::ffff:198.51.100.9"}
		}, []string{cluster, "198.51.100.9:80/6 external"}},
		{"addresses that no packet can go to", func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"127.0.0.1", "0.0.0.0", "224.0.0.1", "169.254.1.1", "::1", "fe80::1%eth0",
				"x", ""}
		}, []string{cluster}},
		{"two ports of one number", func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "again", Port: 80})
		}, []string{cluster}},
	} {
		if got := frontendWords(decide(one(r.change))); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

// What is wrong with one part is said in one sentence and leaves the rest as it is.
func TestProblems(t *testing.T) {
	four := discoveryv1.AddressTypeIPv4
	for _, r := range []struct {
		name    string
		service *corev1.Service
		slice   *discoveryv1.EndpointSlice
		want    string
		left    string
	}{
		{"a good one", one(), slice(four, 8080, "10.0.0.1"), "", "10.0.0.1"},
		{"port 0", one(), slice(four, 0, "10.0.0.1"), "EndpointSlice web-1: ports[0].port: 0 must be", ""},
		{"port 65536", one(), slice(four, 65536, "10.0.0.1"), "EndpointSlice web-1: ports[0].port: 65536 must be", ""},
		{"the other family", one(), slice(four, 8080, "10.0.0.1", "fd00::1"),
			`EndpointSlice web-1: endpoints[1].addresses[0]: "fd00::1" is no IPv4 address`, "10.0.0.1"},
		{"loopback", one(), slice(four, 8080, "127.0.0.1", "10.0.0.1"), `endpoints[0].addresses[0]: "127.0.0.1"`,
			"10.0.0.1"},
		{"a name", one(), slice(four, 8080, "host", "10.0.0.1"), `endpoints[0].addresses[0]: "host"`, "10.0.0.1"},
		{"names of hosts", one(), slice(discoveryv1.AddressTypeFQDN, 8080, "host"), "", ""},
		{"an unknown protocol", one(func(s *corev1.Service) {
			s.Spec.Ports = append([]corev1.ServicePort{{Name: "x", Protocol: "DCCP", Port: 1}}, s.Spec.Ports...)
		}), slice(four, 8080, "10.0.0.1"), "spec.ports[0]: 1/DCCP with node port 0 is no port", "10.0.0.1"},
	} {
		p := decide(r.service, r.slice)
		got := strings.Join(p.Problems, "\n")
		if r.want == "" && got != "" || !strings.Contains(got, r.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: problems %q, want one with %q", r.name, got, r.want)
		}
		if got := texts(p.Ports[0].Cluster); got != r.left {
			t.Errorf("%s: endpoints %q, want %q", r.name, got, r.left)
		}
	}
}

// What one Service asks for is bounded, and so is what is said of it.
func TestBounds(t *testing.T) {
	ports := func(count int) *corev1.Service {
		return one(func(s *corev1.Service) {
			s.Spec.Ports = nil
			for i := range count {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(i + 1)})
			}
		})
	}
	of := func(s *corev1.Service, good, bad int) *discoveryv1.EndpointSlice {
		var addresses []string
		for i := range good {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.1 here", i/256, i%256))
		}
		for i := range bad {
			addresses = append(addresses, fmt.Sprintf("239.%d.%d.1", i/256, i%256))
		}
		slice := slice(discoveryv1.AddressTypeIPv4, 8080, addresses...)
		slice.Ports = nil
		for _, p := range s.Spec.Ports {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Port: new(int32(8080))})
		}
		return slice
	}
	for _, r := range []struct {
		name             string
		ports, good, bad int
		each             int
		problems         int
	}{
		{"as many as may be", 64, 1024, 0, 1024, 0},
		{"one more each", 64, 1025, 0, 1024, 21},
		{"one port more", 65, 1024, 0, 1008, 21},
		{"more ports than that", 70000, 2, 0, 1, 21},
		{"what may be said", 3, 1, 20, 1, 20},
		{"one sentence more", 3, 1, 21, 1, 21},
		{"much more", 3, 1, 2000, 1, 21},
	} {
		s := ports(r.ports)
		p := decide(s, of(s, r.good, r.bad))
		for _, port := range p.Ports {
			if len(port.Cluster) != r.each || len(port.Local) != r.each {
				t.Fatalf("%s: %s has %d endpoints, %d here, want %d", r.name, port.Name, len(port.Cluster),
					len(port.Local),
					r.each)
			}
		}
		if len(p.Problems) != r.problems || len(p.Hairpins) != r.each {
			t.Errorf("%s: %d sentences, want %d; %d addresses here: %q", r.name, len(p.Problems), r.problems,
				len(p.Hairpins), p.Problems[:min(len(p.Problems), 3)])
		}
	}
}

// Of many keys that another Service has, 20 are named.
func TestTakenIsBounded(t *testing.T) {
	for _, r := range []struct{ ports, want int }{{20, 20}, {21, 21}, {5000, 21}} {
		s := one(func(s *corev1.Service) {
			s.Spec.Ports = nil
			for i := range r.ports {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(i + 1)})
			}
		})
		state := NewState()
		state.Replace("ns/first", time.Unix(0, 0), decide(s))
		if got := state.Replace("ns/second", time.Unix(1, 0), decide(s)); len(got) != r.want {
			t.Errorf("%d keys of another: %d sentences, want %d", r.ports, len(got), r.want)
		}
	}
}

// Ports are found by name and protocol, each slice having its own number.
func TestPortsByName(t *testing.T) {
	s := one(func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "http", Protocol: "UDP", Port: 80})
	})
	other := slice(discoveryv1.AddressTypeIPv4, 9090, "10.0.0.2")
	udp := slice(discoveryv1.AddressTypeIPv4, 53, "10.0.0.3")
	udp.Ports[0].Protocol = new(corev1.ProtocolUDP)
	unnamed := slice(discoveryv1.AddressTypeIPv4, 1, "10.0.0.4")
	unnamed.Ports[0].Name = nil
	every := slice(discoveryv1.AddressTypeIPv4, 1, "10.0.0.5")
	every.Ports[0].Port = nil
	p := decide(s, slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.1"), other, udp, unnamed, every)
	if tcp, dns := texts(p.Ports[0].Cluster), texts(p.Ports[1].Cluster); tcp != "10.0.0.1 10.0.0.2:9090" ||
		dns != "10.0.0.3:53" {
		t.Errorf("TCP %q, UDP %q", tcp, dns)
	}
	if p.Ports[0].ID == p.Ports[1].ID {
		t.Error("both ports have one ID")
	}
}

func TestAffinity(t *testing.T) {
	for _, r := range []struct {
		change func(*corev1.Service)
		want   time.Duration
	}{
		{func(*corev1.Service) {}, 0},
		{func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityNone }, 0},
		{func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, 10800 * time.Second},
		{func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(7))}}
		}, 7 * time.Second},
	} {
		if got := decide(one(r.change)).Ports[0].Affinity; got != r.want {
			t.Errorf("affinity %s, want %s", got, r.want)
		}
	}
}

// A load balancer is told of this node's ready Pods, each once; ending ones are not ready.
func TestHealth(t *testing.T) {
	s := one(balanced("203.0.113.1"), localTraffic, func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 31000 })
	s.Spec.ClusterIPs = []string{"10.96.0.50", "fd00:96::50"}
	all := []*discoveryv1.EndpointSlice{
		slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.1 here", "10.0.0.2 here draining", "10.0.0.3 there",
			"10.0.0.4 here"),
		slice(discoveryv1.AddressTypeIPv4, 9090, "10.0.0.1 here"),
		slice(discoveryv1.AddressTypeIPv6, 8080, "fd00::1 here"),
	}
	if got := decide(s, all...).Health; got == nil || *got != (Health{31000, 2}) {
		t.Errorf("%+v, want port 31000 and 2 Pods", got)
	}
	for _, change := range []func(*corev1.Service){
		func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 0 },
		func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
		func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster },
	} {
		other := s.DeepCopy()
		if change(other); decide(other, all...).Health != nil {
			t.Errorf("a Service that asks for none has a health check: %+v", other.Spec)
		}
	}
}

func TestKeepPlaces(t *testing.T) {
	list := func(text string) (out []netip.AddrPort) {
		for _, c := range text {
			out = append(out, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(c)}), 80))
		}
		return out
	}
	for _, r := range []struct{ had, want, now string }{
		{"", "abc", "abc"}, {"abc", "abc", "abc"}, {"abc", "bc", "cb"}, {"abc", "abcd", "abcd"},
		{"abcd", "bcde", "ebcd"}, {"cba", "abc", "cba"}, {"abc", "", ""}, {"abcd", "d", "d"}, {"ab", "cd", "cd"},
	} {
		if got := keepPlaces(list(r.had), list(r.want)); !slices.Equal(got, list(r.now)) {
			t.Errorf("%q then %q: %v, want %q", r.had, r.want, got, r.now)
		}
	}
}

// UDP flows end where their endpoint ends, and where there was none before.
func TestStaleFlows(t *testing.T) {
	udp := one(func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "UDP" })
	of := func(endpoints ...string) Plan {
		s := slice(discoveryv1.AddressTypeIPv4, 8080, endpoints...)
		s.Ports[0].Protocol = new(corev1.ProtocolUDP)
		return decide(udp, s)
	}
	key := Key{netip.MustParseAddr("10.96.0.50"), 17, 80}
	for _, r := range []struct {
		name     string
		old, now Plan
		stale    bool
		left     string
	}{
		{"nothing new", of("10.0.0.1"), of("10.0.0.1"), false, ""},
		{"one more", of("10.0.0.1"), of("10.0.0.1", "10.0.0.2"), false, ""},
		{"one less", of("10.0.0.1", "10.0.0.2"), of("10.0.0.2"), true, "10.0.0.2"},
		{"the first", of(), of("10.0.0.1"), true, "10.0.0.1"},
		{"the last goes", of("10.0.0.1"), of(), true, ""},
		{"the Service goes", of("10.0.0.1"), Plan{}, true, ""},
		{"the Service comes", Plan{}, of("10.0.0.1"), true, "10.0.0.1"},
		{"TCP", decide(one(), slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.1")), decide(one()), false, ""},
	} {
		flows := stale(r.old, r.now)
		left, found := flows[key]
		if found != r.stale || texts(left) != r.left || len(flows) > 1 {
			t.Errorf("%s: %v, want %v with %q left", r.name, flows, r.stale, r.left)
		}
	}
}

// Inputs belong to the caches that everybody reads.
func TestInputsStay(t *testing.T) {
	s := one(balanced("203.0.113.1"), withNodePorts, localTraffic)
	e := slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.2 here zone:z1", "10.0.0.1 there zone:z1")
	service, endpoints := s.DeepCopy(), e.DeepCopy()
	decide(s, e)
	if !reflect.DeepEqual(s, service) || !reflect.DeepEqual(e, endpoints) {
		t.Error("Decide changed its input")
	}
}
