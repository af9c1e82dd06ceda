package plan

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

	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

var testNode = Node{Name: "here", Zone: "z1",
	Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8:1::1")},
	PodRanges: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd00:1::/64")}}

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

// TestEndpoints checks which endpoints connections go to, to any node and to this one only.
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
		p := decide(servicetest.New(), servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, words...)).Ports[0]
		if got := texts(p.ClusterEndpoints); got != r.cluster {
			t.Errorf("%s: everywhere %q, want %q", r.name, got, r.cluster)
		}
		if got := texts(p.LocalEndpoints); got != r.local {
			t.Errorf("%s: here %q, want %q", r.name, got, r.local)
		}
	}
}

// A Pod may reach itself where an endpoint is on this node, and where the endpoint names no node.
func TestHairpins(t *testing.T) {
	for endpoint, want := range map[string]int{"10.0.0.1 here": 1, "10.0.0.1": 1, "10.0.0.1 there": 0,
		"10.0.0.1 here draining": 1, "10.0.0.1 unready": 0} {
		got := decide(servicetest.New(),
			servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, endpoint, "10.0.0.2 there"))
		if len(got.Hairpins) != want {
			t.Errorf("%q: hairpins %v, want %d", endpoint, got.Hairpins, want)
		}
	}
}

// frontendWords returns frontends in words: address:port/protocol, class, and "guarded".
func frontendWords(p Plan) []string {
	classes := map[TrafficClass]string{InternalCluster: "internal", InternalLocal: "internal-local",
		ExternalCluster: "external", ExternalLocal: "external-local"}
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

// TestFrontends checks where a Service is reached, and in which class.
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
		{"node port", servicetest.WithNodePorts, []string{cluster, "192.0.2.1:30080/6 external"}},
		{"node port of both families", func(s *corev1.Service) {
			servicetest.WithNodePorts(s)
			s.Spec.ClusterIPs = []string{"10.96.0.50", "fd00:96::50"}
		}, []string{cluster, "192.0.2.1:30080/6 external", "[fd00:96::50]:80/6 internal",
			"[2001:db8:1::1]:30080/6 external"}},
		{"node port of a ClusterIP Service", func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30080 },
			[]string{cluster}},
		{"load balancer", servicetest.Balanced("203.0.113.1", "203.0.113.2"),
			[]string{cluster, "203.0.113.1:80/6 external", "203.0.113.2:80/6 external"}},
		{"load balancer that is a proxy", func(s *corev1.Service) {
			servicetest.Balanced("203.0.113.1")(s)
			s.Status.LoadBalancer.Ingress[0].IPMode = new(corev1.LoadBalancerIPModeProxy)
		}, []string{cluster}},
		{"load balancer by its address", func(s *corev1.Service) {
			servicetest.Balanced("203.0.113.1")(s)
			s.Status.LoadBalancer.Ingress[0].IPMode = new(corev1.LoadBalancerIPModeVIP)
		}, []string{cluster, "203.0.113.1:80/6 external"}},
		{"load balancer by name", func(s *corev1.Service) {
			servicetest.Balanced("")(s)
			s.Status.LoadBalancer.Ingress[0].Hostname = "lb.example"
		}, []string{cluster}},
		{"outside to this node", func(s *corev1.Service) {
			servicetest.Balanced("203.0.113.1")(s)
			servicetest.WithNodePorts(s)
			s.Spec.Type, s.Spec.ExternalIPs = corev1.ServiceTypeLoadBalancer, []string{"198.51.100.9"}
			servicetest.ExternalLocal(s)
		}, []string{cluster, "192.0.2.1:30080/6 external-local", "203.0.113.1:80/6 external-local",
			"198.51.100.9:80/6 external-local"}},
		{"sources", func(s *corev1.Service) {
			servicetest.Balanced("203.0.113.1")(s)
			s.Spec.LoadBalancerSourceRanges, s.Spec.ExternalIPs = []string{"192.0.2.0/24"}, []string{"198.51.100.9"}
		}, []string{cluster, "203.0.113.1:80/6 external guarded", "198.51.100.9:80/6 external"}},
		{"sources that are none", func(s *corev1.Service) {
			servicetest.Balanced("203.0.113.1")(s)
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
		if got := frontendWords(decide(servicetest.New(r.change))); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

// An error in one part is reported in one sentence and leaves the rest unchanged.
func TestProblems(t *testing.T) {
	four := discoveryv1.AddressTypeIPv4
	for _, r := range []struct {
		name    string
		service *corev1.Service
		slice   *discoveryv1.EndpointSlice
		want    string
		left    string
	}{
		{"a good one", servicetest.New(), servicetest.Slice(four, 8080, "10.0.0.1"), "", "10.0.0.1"},
		{"port 0", servicetest.New(), servicetest.Slice(four, 0, "10.0.0.1"),
			"EndpointSlice web-1: ports[0].port: 0 must be", ""},
		{"port 65536", servicetest.New(), servicetest.Slice(four, 65536, "10.0.0.1"),
			"EndpointSlice web-1: ports[0].port: 65536 must be", ""},
		{"the other family", servicetest.New(), servicetest.Slice(four, 8080, "10.0.0.1", "fd00::1"),
			`EndpointSlice web-1: endpoints[1].addresses[0]: "fd00::1" is no IPv4 address`, "10.0.0.1"},
		{"loopback", servicetest.New(), servicetest.Slice(four, 8080, "127.0.0.1", "10.0.0.1"),
			`endpoints[0].addresses[0]: "127.0.0.1"`,
			"10.0.0.1"},
		{"a name", servicetest.New(), servicetest.Slice(four, 8080, "host", "10.0.0.1"),
			`endpoints[0].addresses[0]: "host"`, "10.0.0.1"},
		{"names of hosts", servicetest.New(), servicetest.Slice(discoveryv1.AddressTypeFQDN, 8080, "host"), "", ""},
		{"an unknown protocol", servicetest.New(func(s *corev1.Service) {
			s.Spec.Ports = append([]corev1.ServicePort{{Name: "x", Protocol: "DCCP", Port: 1}}, s.Spec.Ports...)
		}), servicetest.Slice(four, 8080, "10.0.0.1"), "spec.ports[0]: 1/DCCP with node port 0 is no port", "10.0.0.1"},
	} {
		p := decide(r.service, r.slice)
		got := strings.Join(p.Problems, "\n")
		if r.want == "" && got != "" || !strings.Contains(got, r.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: problems %q, want one with %q", r.name, got, r.want)
		}
		if got := texts(p.Ports[0].ClusterEndpoints); got != r.left {
			t.Errorf("%s: endpoints %q, want %q", r.name, got, r.left)
		}
	}
}

// What one Service may use is bounded, and so is the number of problems reported.
func TestBounds(t *testing.T) {
	ports := func(count int) *corev1.Service {
		return servicetest.New(func(s *corev1.Service) {
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
		slice := servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, addresses...)
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
			if len(port.ClusterEndpoints) != r.each || len(port.LocalEndpoints) != r.each {
				t.Fatalf("%s: %s has %d endpoints, %d here, want %d", r.name, port.Name, len(port.ClusterEndpoints),
					len(port.LocalEndpoints),
					r.each)
			}
		}
		if len(p.Problems) != r.problems || len(p.Hairpins) != r.each {
			t.Errorf("%s: %d sentences, want %d; %d addresses here: %q", r.name, len(p.Problems), r.problems,
				len(p.Hairpins), p.Problems[:min(len(p.Problems), 3)])
		}
	}
}

// Ports are found by name and protocol, each slice having its own number.
func TestPortsByName(t *testing.T) {
	s := servicetest.New(func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "http", Protocol: "UDP", Port: 80})
	})
	other := servicetest.Slice(discoveryv1.AddressTypeIPv4, 9090, "10.0.0.2")
	udp := servicetest.Slice(discoveryv1.AddressTypeIPv4, 53, "10.0.0.3")
	udp.Ports[0].Protocol = new(corev1.ProtocolUDP)
	unnamed := servicetest.Slice(discoveryv1.AddressTypeIPv4, 1, "10.0.0.4")
	unnamed.Ports[0].Name = nil
	every := servicetest.Slice(discoveryv1.AddressTypeIPv4, 1, "10.0.0.5")
	every.Ports[0].Port = nil
	p := decide(s, servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.1"), other, udp, unnamed, every)
	tcp, dns := texts(p.Ports[0].ClusterEndpoints), texts(p.Ports[1].ClusterEndpoints)
	if tcp != "10.0.0.1 10.0.0.2:9090" || dns != "10.0.0.3:53" {
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
		if got := decide(servicetest.New(r.change)).Ports[0].SessionAffinity; got != r.want {
			t.Errorf("affinity %s, want %s", got, r.want)
		}
	}
}

// A load balancer gets the number of this node's ready Pods, each counted once; terminating ones are not ready.
func TestHealth(t *testing.T) {
	s := servicetest.New(servicetest.Balanced("203.0.113.1"), servicetest.ExternalLocal,
		func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 31000 })
	s.Spec.ClusterIPs = []string{"10.96.0.50", "fd00:96::50"}
	all := []*discoveryv1.EndpointSlice{
		servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.1 here", "10.0.0.2 here draining",
			"10.0.0.3 there", "10.0.0.4 here"),
		servicetest.Slice(discoveryv1.AddressTypeIPv4, 9090, "10.0.0.1 here"),
		servicetest.Slice(discoveryv1.AddressTypeIPv6, 8080, "fd00::1 here"),
	}
	if got := decide(s, all...).HealthCheck; got == nil || *got != (HealthCheck{31000, 2}) {
		t.Errorf("%+v, want port 31000 and 2 Pods", got)
	}
	for _, change := range []func(*corev1.Service){
		func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 0 },
		func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
		func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster },
	} {
		other := s.DeepCopy()
		if change(other); decide(other, all...).HealthCheck != nil {
			t.Errorf("a Service that asks for none has a health check: %+v", other.Spec)
		}
	}
}

// UDP flows end where their endpoint ends, and where there was none before.
func TestStaleFlows(t *testing.T) {
	udp := servicetest.New(func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "UDP" })
	of := func(endpoints ...string) Plan {
		s := servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, endpoints...)
		s.Ports[0].Protocol = new(corev1.ProtocolUDP)
		return decide(udp, s)
	}
	key := Destination{netip.MustParseAddr("10.96.0.50"), 17, 80}
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
		{"TCP", decide(servicetest.New(), servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.1")),
			decide(servicetest.New()), false, ""},
	} {
		flows := StaleFlows(r.old, r.now)
		left, found := flows[key]
		if found != r.stale || texts(left) != r.left || len(flows) > 1 {
			t.Errorf("%s: %v, want %v with %q left", r.name, flows, r.stale, r.left)
		}
	}
}

// Decide leaves its inputs unchanged: they belong to shared caches.
func TestInputsStay(t *testing.T) {
	s := servicetest.New(servicetest.Balanced("203.0.113.1"), servicetest.WithNodePorts, servicetest.ExternalLocal)
	e := servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, "10.0.0.2 here zone:z1", "10.0.0.1 there zone:z1")
	service, endpoints := s.DeepCopy(), e.DeepCopy()
	decide(s, e)
	if !reflect.DeepEqual(s, service) || !reflect.DeepEqual(e, endpoints) {
		t.Error("Decide changed its input")
	}
}
