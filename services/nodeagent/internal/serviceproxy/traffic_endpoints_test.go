package serviceproxy

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/keptport"
	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

// withEndpoints returns the slices of a Service, with endpoints that edit changes by their peers' names.
func withEndpoints(s *corev1.Service, edit func(name string, e *discoveryv1.Endpoint), peers ...*peer) []metav1.Object {
	out := newSlices(s, peers...)
	for _, object := range out {
		slice := object.(*discoveryv1.EndpointSlice)
		for i := range slice.Endpoints {
			edit(peers[i].name, &slice.Endpoints[i])
		}
	}
	return out
}

// expectFrom requires that all of these peers answer, and no other.
func expectFrom(t *testing.T, what string, do func(func()), to netip.Addr, port int, want ...string) {
	t.Helper()
	do(func() {
		for _, network := range []string{"tcp", "udp"} {
			got := count(40, network, to, port)
			for _, name := range want {
				if got[name] < 3 {
					t.Errorf("%s over %s: %v, want %v", what, network, got, want)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s over %s: %v, want %v alone", what, network, got, want)
			}
		}
	})
}

// A Pod reaches itself by a Service whose only endpoint it is, also where the endpoint was written by hand and
// names no node: each optional field is absent, in turn and together.
func TestPodReachesItself(t *testing.T) {
	m := newMachine(t)
	for what, edit := range map[string]func(string, *discoveryv1.Endpoint){
		"as the controller writes it": func(string, *discoveryv1.Endpoint) {},
		"of no node":                  func(_ string, e *discoveryv1.Endpoint) { e.NodeName = nil },
		"of an unknown state": func(_ string, e *discoveryv1.Endpoint) {
			e.NodeName, e.Hints, e.Zone, e.TargetRef = nil, nil, nil, nil
			e.Conditions = discoveryv1.EndpointConditions{}
		},
	} {
		s := newService()
		m.put(append(withEndpoints(s, edit, m.a), s)...)
		for _, to := range []netip.Addr{clusterIP, clusterIP6} {
			expectFrom(t, what+", at "+to.String(), m.a.Do, to, servicePort, "a")
		}
	}
}

// Terminating endpoints that still serve get connections while none is ready; unready ones never do.
//
// POD-163
func TestTerminatingEndpoints(t *testing.T) {
	m := newMachine(t)
	s := newService(servicetest.WithNodePorts)
	ends := func(names ...string) []metav1.Object {
		return withEndpoints(s, func(name string, e *discoveryv1.Endpoint) {
			for _, ending := range names {
				if name == ending {
					e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true),
						Terminating: new(true)}
				}
			}
		}, m.a, m.b, m.remote)
	}
	m.put(append(ends("a"), s)...)
	expectFrom(t, "while one ends", m.stranger.Do, clusterIP, servicePort, "b", "remote")
	m.put(ends("a", "b", "remote")...)
	for _, to := range []netip.Addr{clusterIP, clusterIP6} {
		expectFrom(t, "while all end", m.stranger.Do, to, servicePort, "a", "b", "remote")
	}
	expectFrom(t, "while all end, at the node port", m.stranger.Do, nodeIP, nodePort, "a", "b", "remote")
	m.put(withEndpoints(s, func(name string, e *discoveryv1.Endpoint) {
		e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(name == "remote"),
			Terminating: new(name != "b")}
	}, m.a, m.b, m.remote)...)
	expectFrom(t, "while one that ends answers", m.stranger.Do, clusterIP, servicePort, "remote")
	m.put(ends("a", "remote")...)
	expectFrom(t, "once one is ready again", m.stranger.Do, clusterIP, servicePort, "b")
}

// Connections follow hints to the endpoints of the node, or of its zone, as long as the hints are complete.
func TestHintsByTraffic(t *testing.T) {
	m := newMachine(t)
	s := newService()
	zone := func(name string) *discoveryv1.EndpointHints {
		return &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: name}}}
	}
	hint := func(hints map[string]*discoveryv1.EndpointHints) []metav1.Object {
		return withEndpoints(s, func(name string, e *discoveryv1.Endpoint) { e.Hints = hints[name] }, m.a, m.b,
			m.remote)
	}
	m.put(append(hint(map[string]*discoveryv1.EndpointHints{"a": zone("z1"), "b": zone("z2"), "remote": zone("z1")}),
		s)...)
	expectFrom(t, "in the zone", m.stranger.Do, clusterIP, servicePort, "a", "remote")
	m.put(hint(map[string]*discoveryv1.EndpointHints{"a": zone("z1"), "b": zone("z2")})...)
	expectFrom(t, "where one has none", m.stranger.Do, clusterIP, servicePort, "a", "b", "remote")
	node := zone("z1")
	node.ForNodes = []discoveryv1.ForNode{{Name: "here"}}
	other := zone("z1")
	other.ForNodes = []discoveryv1.ForNode{{Name: "there"}}
	m.put(hint(map[string]*discoveryv1.EndpointHints{"a": node, "b": other, "remote": other})...)
	expectFrom(t, "on the node", m.stranger.Do, clusterIP, servicePort, "a")
}

// A Service that is labelled for another proxy is left to it from the moment when it is labelled.
func TestServiceOfAnotherProxy(t *testing.T) {
	m := newMachine(t)
	s := newService(servicetest.WithNodePorts)
	labelled := s.DeepCopy()
	labelled.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "mine"}
	m.put(append(newSlices(s, m.a), labelled)...)
	silent := func(when string) {
		t.Helper()
		m.stranger.Do(func() {
			if got := ask("tcp", clusterIP, servicePort); got.err == nil {
				t.Errorf("%s: %s", when, got)
			}
			if got := ask("tcp", nodeIP, nodePort); !refused(got) {
				t.Errorf("%s, at the node port: %s, want the refusal of the node itself", when, got)
			}
		})
	}
	silent("labelled")
	m.put(s)
	expectFrom(t, "without the label", m.stranger.Do, clusterIP, servicePort, "a")
	m.put(labelled)
	silent("labelled again")
}

// A Service that names another node's address does not get the port of its agent, nor a Pod's address, from the
// moment when the node is known; it gets what else it names.
func TestWhatOtherNodesNeed(t *testing.T) {
	m := newMachine(t)
	m.stranger.serve(t)
	m.put()
	node := *m.node
	node.ClusterRanges = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	m.SetNode(node)
	const free = 81
	evil := newService(func(s *corev1.Service) {
		s.Spec.ExternalIPs = []string{m.stranger.addr.String(), m.remote.addr.String()}
		s.Spec.Ports = []corev1.ServicePort{{Name: "agent", Protocol: corev1.ProtocolTCP, Port: podPort},
			{Name: "free", Protocol: corev1.ProtocolTCP, Port: free}}
	})
	m.put(append(newSlices(evil, m.a), evil)...)
	answersOnce(t, "an address that is nobody's", m.here, m.stranger.addr, podPort, "a")
	m.setPeer(servicetest.NodeAt("there", podPort, m.stranger.addr.String()))
	m.sync()
	for name, do := range map[string]func(func()){"node": m.here, "b": m.b.Do} {
		answersOnce(t, name+" asks the agent of another node", do, m.stranger.addr, podPort, "stranger")
		answersOnce(t, name+" asks a Pod of another node", do, m.remote.addr, podPort, "remote")
		answersOnce(t, name+" asks a port that is free", do, m.stranger.addr, free, "a")
	}
	m.removePeer(servicetest.NodeAt("there", podPort, m.stranger.addr.String()))
	m.sync()
	answersOnce(t, "when the node has gone", m.here, m.stranger.addr, podPort, "a")
}

// answersOnce asks over TCP until a peer answers, which must be the wanted one.
func answersOnce(t *testing.T, what string, do func(func()), to netip.Addr, port int, want string) {
	t.Helper()
	do(func() {
		var got asked
		for until := time.Now().Add(time.Minute); time.Now().Before(until); {
			if got = ask("tcp", to, port); got.err == nil {
				break
			}
		}
		if got.who != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	})
}

// A Service that names the node's own addresses gets their ports, but not those that the node itself needs.
func TestWhatTheNodeNeeds(t *testing.T) {
	m := newMachine(t)
	const api, other = 6443, 6444
	node := *m.node
	node.KeptPorts = []keptport.Port{{Keeper: "apiserver", Protocol: keptport.TCP, First: api, Last: api}}
	m.SetNode(node)
	answerAt(t, api, other)
	evil := newService(servicetest.Balanced(nodeIP6.String()), func(s *corev1.Service) {
		s.Spec.ExternalIPs = []string{nodeIP.String(), "127.0.0.1", "::1"}
		s.Spec.Ports = []corev1.ServicePort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: api},
			{Name: "other", Protocol: corev1.ProtocolTCP, Port: other}}
	})
	m.put(append(newSlices(evil, m.a), evil)...)
	for name, do := range map[string]func(func()){"node": m.here, "stranger": m.stranger.Do, "b": m.b.Do} {
		do(func() {
			for _, to := range []netip.Addr{nodeIP, nodeIP6} {
				if got := ask("tcp", to, api); got.who != "node" {
					t.Errorf("%s asks the node's own port at %s: %s", name, to, got)
				}
				if got := ask("tcp", to, other); got.who != "a" {
					t.Errorf("%s asks the Service at %s: %s", name, to, got)
				}
			}
			if got := ask("tcp", clusterIP, api); got.who != "a" {
				t.Errorf("%s asks the Service at its own address: %s", name, got)
			}
		})
	}
	for _, to := range []string{"127.0.0.1", "::1"} {
		if got := ask("tcp", netip.MustParseAddr(to), other); got.who != "node" {
			t.Errorf("the node asks itself at %s: %s", to, got)
		}
	}
	if reported := m.reported["ns/web"]; len(reported) != 4 {
		t.Errorf("%q are reported, want a sentence for each address that is left out", reported)
	}
}

// answerAt makes the node itself answer at ports of all its addresses.
func answerAt(t *testing.T, ports ...int) {
	t.Helper()
	for _, port := range ports {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		must(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
				_, _ = fmt.Fprintln(conn, "node", conn.RemoteAddr())
				_ = conn.Close()
			}
		}()
	}
}

// The node keeps what it needs at all addresses of the machine, also at those that its Node does not list, whether
// a Service there has endpoints, has none, or admits only some clients.
func TestWhatTheNodeNeedsAtUnlistedAddresses(t *testing.T) {
	m := newMachine(t)
	const api, other = 6443, 6444
	unlisted, unlisted6 := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8:9::9")
	address(t, bridge, "203.0.113.9/32")
	address(t, bridge, "2001:db8:9::9/128")
	node := *m.node
	node.KeptPorts = append([]keptport.Port{{Keeper: "apiserver", Protocol: keptport.TCP, First: api, Last: api},
		{Keeper: "tunnel", Protocol: keptport.UDP, First: other, Last: other}}, keptport.NodePorts()...)
	m.SetNode(node)
	answerAt(t, api, other)
	ports := func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: api},
			{Name: "other", Protocol: corev1.ProtocolTCP, Port: other}}
	}
	named := func(s *corev1.Service) { s.Spec.ExternalIPs = []string{unlisted.String(), unlisted6.String()} }
	expect := func(when, free string) {
		t.Helper()
		for _, to := range []netip.Addr{unlisted, unlisted6} {
			for name, do := range map[string]func(func()){"node": m.here, "stranger": m.stranger.Do, "b": m.b.Do} {
				answersOnce(t, when+": "+name+" asks the node's own port", do, to, api, "node")
				if free != "" {
					answersOnce(t, when+": "+name+" asks a port that is free", do, to, other, free)
				}
			}
			if free == "" {
				m.stranger.Do(func() {
					if got := ask("tcp", to, other); got.err == nil {
						t.Errorf("%s: a port that is free answers at %s: %s", when, to, got)
					}
				})
			}
		}
	}
	evil := newService(named, ports, servicetest.WithNodePorts)
	m.put(append(newSlices(evil, m.a), evil)...)
	expect("with an endpoint", "a")
	answersOnce(t, "the node port", m.stranger.Do, nodeIP, nodePort, "a")
	m.put(append(newSlices(evil), evil)...)
	expect("without any", "")
	guarded := newService(ports, servicetest.Balanced(unlisted.String(), unlisted6.String()), func(s *corev1.Service) {
		s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"}
	})
	m.put(append(newSlices(guarded, m.a), guarded)...)
	expect("with others let in", "")
	guarded = guarded.DeepCopy()
	guarded.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/25"}
	m.put(guarded)
	expect("with fewer let in", "")
}

// The API server's address is known from the endpoints of its Service, before and after a Service names it.
func TestWhereTheAPIServerIsReached(t *testing.T) {
	m := newMachine(t)
	m.stranger.serve(t)
	evil := newService(func(s *corev1.Service) {
		s.Spec.ExternalIPs = []string{m.stranger.addr.String(), m.stranger.six.String()}
		s.Spec.Ports = []corev1.ServicePort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: podPort}}
	})
	m.put(append(newSlices(evil, m.a), evil)...)
	answersOnce(t, "before the API server is known", m.here, m.stranger.addr, podPort, "a")
	api := newService(func(s *corev1.Service) { s.Namespace, s.Name = "default", "kubernetes" })
	m.put(newSlices(api, m.stranger)...)
	for name, do := range map[string]func(func()){"node": m.here, "b": m.b.Do} {
		for _, to := range []netip.Addr{m.stranger.addr, m.stranger.six} {
			answersOnce(t, name+" asks the API server", do, to, podPort, "stranger")
		}
	}
	m.put(newSlices(api, m.remote)...)
	answersOnce(t, "once it is elsewhere", m.here, m.stranger.addr, podPort, "a")
}
