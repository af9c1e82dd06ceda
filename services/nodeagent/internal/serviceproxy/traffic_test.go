package serviceproxy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/services/nodeagent/internal/serviceproxy/kernel"
	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
	"keelson.dev/services/nodeagent/internal/serviceproxy/table"
)

// count asks often and returns how often each endpoint answered; "" counts failures.
func count(times int, network string, to netip.Addr, port int) map[string]int {
	answers := map[string]int{}
	for range times {
		answers[ask(network, to, port).who]++
	}
	return answers
}

// Every client reaches every endpoint at the Service's address, over both families and protocols, and endpoints see
// the address of this node's Pods.
func TestClusterIP(t *testing.T) {
	m := newMachine(t)
	s := newService()
	m.put(append(newSlices(s, m.a, m.b, m.remote), s)...)
	for _, r := range []struct {
		client  string
		do      func(func())
		sees    [2]string
		network string
	}{
		{"the node", m.here, [2]string{}, "tcp"},
		{"a", m.a.Do, [2]string{"10.244.1.5", "fd00:1::5"}, "tcp"},
		{"b", m.b.Do, [2]string{"10.244.1.6", "fd00:1::6"}, "tcp"},
		{"another machine", m.stranger.Do, [2]string{}, "tcp"},
		{"the node", m.here, [2]string{}, "udp"},
		{"a", m.a.Do, [2]string{"10.244.1.5", "fd00:1::5"}, "udp"},
		{"another machine", m.stranger.Do, [2]string{}, "udp"},
	} {
		for i, to := range []netip.Addr{clusterIP, clusterIP6} {
			r.do(func() {
				answers := map[string]int{}
				for range 60 {
					got := ask(r.network, to, servicePort)
					if got.err != nil {
						t.Errorf("%s asks %s over %s: %v", r.client, to, r.network, got.err)
						return
					}
					answers[got.who]++
					// A Pod that reaches itself would answer itself without passing the node.
					if r.sees[i] != "" && got.who != r.client && got.from != r.sees[i] {
						t.Errorf("%s asks %s over %s: %s, want %s", r.client, to, r.network, got, r.sees[i])
					}
				}
				for _, who := range []string{"a", "b", "remote"} {
					if answers[who] < 5 {
						t.Errorf("%s asks %s over %s: %s answered %d of 60", r.client, to, r.network, who, answers[who])
					}
				}
			})
		}
	}
}

// The kernel tracks connections for the configured time, in this namespace alone.
func TestConnectionsAreFollowed(t *testing.T) {
	const closeWait = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait"
	m := newMachine(t)
	s := newService()
	m.put(append(newSlices(s, m.a), s)...)
	if got, err := os.ReadFile(closeWait); err != nil || strings.TrimSpace(string(got)) != "90" {
		t.Errorf("half-closed connections are followed for %q seconds, %v; want 90", got, err)
	}
}

// Clients outside reach node ports, load balancers' addresses and external addresses, and the answer comes back
// through this node.
func TestFromOutside(t *testing.T) {
	m := newMachine(t)
	balancer, external := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("198.51.100.9")
	s := newService(servicetest.WithNodePorts, servicetest.Balanced(balancer.String()), func(s *corev1.Service) {
		s.Spec.ExternalIPs = []string{external.String()}
	})
	m.put(append(newSlices(s, m.a, m.remote), s)...)
	for _, r := range []struct {
		to   netip.Addr
		port int
	}{{nodeIP, nodePort}, {nodeIP6, nodePort}, {balancer, servicePort}, {external, servicePort}} {
		for name, do := range map[string]func(func()){"stranger": m.stranger.Do, "node": m.here, "b": m.b.Do} {
			for _, network := range []string{"tcp", "udp"} {
				do(func() {
					if got := count(40, network, r.to, r.port); got["a"] < 3 || got["remote"] < 3 || got[""] != 0 {
						t.Errorf("%s asks %s port %d over %s: %v", name, r.to, r.port, network, got)
					}
					got := ask(network, r.to, r.port)
					if got.from == m.stranger.addr.String() || got.from == m.stranger.six.String() {
						t.Errorf("%s asks %s port %d over %s: %s, who might answer past the node", name, r.to, r.port,
							network, got)
					}
				})
			}
		}
	}
	if got := ask("tcp", netip.MustParseAddr("127.0.0.1"), nodePort); got.err == nil {
		t.Errorf("a node port is answered at the loopback address: %s", got)
	}
}

// externalTrafficPolicy Local: clients outside reach only this node's endpoints, which see the clients' addresses;
// those inside reach all.
func TestExternalTrafficPolicyLocal(t *testing.T) {
	m := newMachine(t)
	s := newService(servicetest.WithNodePorts, servicetest.ExternalLocal)
	m.put(append(newSlices(s, m.a, m.remote), s)...)
	m.stranger.Do(func() {
		for range 20 {
			if got := ask("tcp", nodeIP, nodePort); got.who != "a" || got.from != m.stranger.addr.String() {
				t.Errorf("from outside: %s, want a, who sees %s", got, m.stranger.addr)
			}
		}
	})
	for name, do := range map[string]func(func()){"node": m.here, "b": m.b.Do} {
		do(func() {
			if got := count(40, "tcp", nodeIP, nodePort); got["a"] < 3 || got["remote"] < 3 {
				t.Errorf("%s asks the node port: %v, want all endpoints", name, got)
			}
		})
	}
	// Without an endpoint of its own the node drops what comes from outside, and only that.
	m.put(newSlices(s, m.remote)...)
	m.stranger.Do(func() {
		if got := ask("tcp", nodeIP, nodePort); got.err == nil || !timedOut(got.err) {
			t.Errorf("from outside without an endpoint of this node: %s, want a timeout", got)
		}
	})
	if got := ask("tcp", nodeIP, nodePort); got.who != "remote" {
		t.Errorf("from the node without an endpoint of this node: %s", got)
	}
}

func timedOut(err error) bool {
	var failed net.Error
	return errors.As(err, &failed) && failed.Timeout()
}

// internalTrafficPolicy Local keeps to this node's endpoints, and drops packets where it has none.
func TestInternalTrafficPolicyLocal(t *testing.T) {
	m := newMachine(t)
	s := newService(func(s *corev1.Service) {
		s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	})
	m.put(append(newSlices(s, m.a, m.remote), s)...)
	m.b.Do(func() {
		if got := count(30, "tcp", clusterIP, servicePort); got["a"] != 30 {
			t.Errorf("a Pod asks: %v, want only this node's", got)
		}
	})
	m.put(newSlices(s, m.remote)...)
	m.b.Do(func() {
		if got := ask("tcp", clusterIP, servicePort); got.err == nil || !timedOut(got.err) {
			t.Errorf("without an endpoint of this node: %s, want a timeout", got)
		}
	})
}

// refused reports whether a connection was refused at once, rather than timed out.
func refused(got asked) bool { return got.err != nil && strings.Contains(got.err.Error(), "refused") }

// A destination without endpoints, and a port that no Service has, is refused at once, however often; with the
// first endpoint it is answered.
func TestWithoutEndpoints(t *testing.T) {
	m := newMachine(t)
	external := netip.MustParseAddr("198.51.100.9")
	s := newService(servicetest.WithNodePorts, func(s *corev1.Service) {
		s.Spec.ExternalIPs = []string{external.String()}
	})
	m.put(append(newSlices(s), s)...)
	for name, do := range map[string]func(func()){"stranger": m.stranger.Do, "node": m.here, "a": m.a.Do} {
		do(func() {
			for _, to := range []struct {
				addr netip.Addr
				port int
			}{{clusterIP, servicePort}, {clusterIP6, servicePort}, {nodeIP, nodePort}, {external, servicePort},
				{clusterIP, servicePort + 1}} {
				for range 12 { // more than the kernel sends ICMP messages in a second
					if got := ask("tcp", to.addr, to.port); !refused(got) {
						t.Errorf("%s asks %s port %d: %s, want a refusal", name, to.addr, to.port, got)
						break
					}
				}
			}
			got := ask("udp", clusterIP, servicePort)
			// What the node itself sends fails at once in the system call.
			if !refused(got) && (name != "node" || !errors.Is(got.err, unix.EPERM)) {
				t.Errorf("%s asks over UDP: %s, want a refusal", name, got)
			}
		})
	}
	m.put(newSlices(s, m.a)...)
	for _, network := range []string{"tcp", "udp"} {
		if got := ask(network, clusterIP, servicePort); got.who != "a" {
			t.Errorf("with an endpoint over %s: %s", network, got)
		}
	}
	if got := ask("tcp", external, servicePort); got.who != "a" {
		t.Errorf("with an endpoint at the external address: %s", got)
	}
}

// A client keeps its endpoint while that exists, then another, and gets a random one after the timeout.
func TestSessionAffinity(t *testing.T) {
	m := newMachine(t)
	const timeout = time.Second
	s := newService(func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(timeout / time.Second))}}
	})
	m.put(append(newSlices(s, m.a, m.b, m.remote), s)...)
	// kept is the peer that answers a client, and its next 30 requests as well, if all of them come within the
	// timeout. On a busy machine they may come later, and are repeated.
	kept := func(to netip.Addr, before, meanwhile func()) (who string) {
		t.Helper()
		for range 20 {
			before()
			began := time.Now()
			who = ask("tcp", to, servicePort).who
			meanwhile()
			got := count(30, "tcp", to, servicePort)
			if who != "" && got[who] == 30 {
				return who
			}
			if time.Since(began) < timeout {
				break
			}
			t.Logf("the client was answered by %q and then by %v, in %v", who, got, time.Since(began))
		}
		t.Fatalf("the client was answered by %q and then by others", who)
		return ""
	}
	peers := map[string]*peer{"a": m.a, "b": m.b, "remote": m.remote}
	for _, to := range []netip.Addr{clusterIP, clusterIP6} {
		first := kept(to, func() {}, func() {})
		// Its endpoint goes, and comes back: the client stays with the second.
		var rest []*peer
		for name, p := range peers {
			if name != first {
				rest = append(rest, p)
			}
		}
		second := kept(to, func() { m.put(newSlices(s, rest...)...) },
			func() { m.put(newSlices(s, m.a, m.b, m.remote)...) })
		if second == first {
			t.Errorf("%s answers after it has gone", first)
		}
		// Clients that ask after the timeout get any endpoint.
		others := map[string]int{}
		for i := 0; len(others) < 2 && i < 20; i++ {
			<-time.After(1100 * time.Millisecond) // the kernel's clock
			others[ask("tcp", to, servicePort).who]++
		}
		if len(others) < 2 {
			t.Errorf("after each timeout the same endpoint answered: %v", others)
		}
	}
}

// loadBalancerSourceRanges restrict the load balancer's address alone.
func TestSourceRanges(t *testing.T) {
	m := newMachine(t)
	balancer := netip.MustParseAddr("203.0.113.1")
	s := newService(servicetest.WithNodePorts, servicetest.Balanced(balancer.String()), func(s *corev1.Service) {
		s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.128/25", "192.0.2.2/32", "fd00::/8"}
	})
	m.put(append(newSlices(s, m.a), s)...)
	ask := func(want bool, why string) {
		t.Helper()
		m.stranger.Do(func() {
			if got := ask("tcp", balancer, servicePort); (got.err == nil) != want {
				t.Errorf("%s: %s", why, got)
			}
			if got := ask("tcp", nodeIP, nodePort); got.err != nil {
				t.Errorf("%s: the node port: %s", why, got)
			}
		})
	}
	ask(true, "within the second range")
	other := s.DeepCopy()
	other.Spec.LoadBalancerSourceRanges = []string{"192.0.2.128/25"}
	m.put(other)
	ask(false, "beside the range")
	open := s.DeepCopy()
	open.Spec.LoadBalancerSourceRanges = nil
	m.put(open)
	ask(true, "without ranges")
}

// A UDP flow does not go on to an endpoint that is gone, and reaches the first new one.
func TestUDPFlows(t *testing.T) {
	m := newMachine(t)
	s := newService()
	m.put(append(newSlices(s, m.a), s)...)
	conn := m.stranger.dial(t, "udp", clusterIP, servicePort)
	if got := exchange(conn); got.who != "a" {
		t.Errorf("at first: %s", got)
	}
	m.put(newSlices(s, m.remote)...)
	if got := exchange(conn); got.who != "remote" {
		t.Errorf("after a has gone: %s", got)
	}
	m.put(newSlices(s)...)
	if got := exchange(conn); !refused(got) {
		t.Errorf("after all have gone: %s", got)
	}
	m.put(newSlices(s, m.b)...)
	_ = exchange(conn) // may read the earlier refusal
	if got := exchange(conn); got.who != "b" {
		t.Errorf("after b has come: %s", got)
	}
}

// askMeanwhile has another machine ask until the returned function is called, which returns the unwanted answers.
func (m *machine) askMeanwhile(good func(asked) bool) func() []asked {
	stop := make(chan struct{})
	var failures []asked
	var asking sync.WaitGroup
	asking.Go(func() {
		m.stranger.Do(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := ask("tcp", clusterIP, servicePort); !good(got) {
					failures = append(failures, got)
				}
			}
		})
	})
	return func() []asked {
		close(stop)
		asking.Wait()
		return failures
	}
}

// A table that the agent does not understand is replaced, and one that it has to recreate is never missing.
func TestStrangeTable(t *testing.T) {
	m := newMachine(t)
	conn, err := nftables.New()
	must(t, err)
	ref := &nftables.Table{Family: nftables.TableFamilyINet, Name: m.Table}
	conn.AddTable(ref)
	must(t, conn.AddSet(&nftables.Set{Table: ref, Name: "ports4", KeyType: nftables.TypeMark}, nil))
	conn.AddChain(&nftables.Chain{Table: ref, Name: "strange"})
	must(t, conn.Flush())
	s := newService()
	m.put(append(newSlices(s, m.a), s)...)
	if got := ask("tcp", clusterIP, servicePort); got.who != "a" {
		t.Errorf("after a strange table: %s", got)
	}
	ruleset := m.state.Ruleset(*m.node)
	failures := m.askMeanwhile(func(got asked) bool { return got.err == nil })
	for range 50 {
		if _, err := m.kernel.Recreate(ruleset); err != nil {
			t.Error(err)
		}
	}
	if failed := failures(); len(failed) > 0 {
		t.Errorf("requests failed while the table was written anew: %v", failed)
	}
	standIn := table.Table{Name: m.Table}.StandIn()
	conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: standIn.Name})
	must(t, conn.Flush())
	if _, err := m.kernel.Program(ruleset); err != nil {
		t.Error(err)
	}
	if kernel.NewTable(standIn.Name).Exists() {
		t.Error("the second table of an agent that died is left")
	}
}

// Connections and new requests continue across changes of their Service and restarts of the agent.
func TestRestart(t *testing.T) {
	m := newMachine(t)
	s := newService(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	all := append(newSlices(s, m.a, m.b, m.remote), s)
	m.put(all...)
	conn := m.stranger.dial(t, "tcp", clusterIP, servicePort)
	who := exchange(conn).who
	failures := m.askMeanwhile(func(got asked) bool { return got.who == who })
	for range 20 {
		next := newProxy(t, m.Table)
		next.put(all...)
		m.proxy = next
	}
	if failed := failures(); len(failed) > 0 {
		t.Errorf("requests failed or left the client's endpoint: %v", failed)
	}
	if got := exchange(conn); got.who != who {
		t.Errorf("the connection to %s: %s", who, got)
	}
	// What the earlier agent knew and this one does not is gone.
	last := newProxy(t, m.Table)
	last.pending.addAll()
	last.sync()
	if got := ask("tcp", clusterIP, servicePort); got.err == nil {
		t.Errorf("a Service that went while no agent ran: %s", got)
	}
}

// A table that is flushed or deleted is noticed; Remove deletes it for good.
func TestTableOfOthers(t *testing.T) {
	m := newMachine(t)
	s := newService()
	m.put(append(newSlices(s, m.a), s)...)
	if m.verifyTable(); !m.pending.empty() {
		t.Error("an untouched table is to be written again")
	}
	must(t, Remove(m.Table))
	if got := ask("tcp", clusterIP, servicePort); got.err == nil {
		t.Errorf("without the table: %s", got)
	}
	m.verifyTable()
	m.sync()
	if got := ask("tcp", clusterIP, servicePort); got.who != "a" {
		t.Errorf("after a look: %s", got)
	}
	must(t, Remove(m.Table))
	must(t, Remove(m.Table))
	conn, err := nftables.New()
	must(t, err)
	if tables, err := conn.ListTables(); err != nil || len(tables) != 0 {
		t.Errorf("tables left: %v, %v", tables, err)
	}
}

// A Service that is wrong in all its parts harms no other, and leaves nothing that is in the way.
func TestHostileInput(t *testing.T) {
	m := newMachine(t)
	s := newService()
	m.put(append(newSlices(s, m.a), s)...)
	long := strings.Repeat("n", 300)
	balanced := servicetest.Balanced("10.96.0.50", "203.0.113.7")
	evil := newService(servicetest.WithNodePorts, balanced, func(s *corev1.Service) {
		s.Name = long
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.66", []string{"10.96.0.66", "fd00:96::66", "", "x"}
		s.Spec.ExternalIPs = []string{"10.96.0.50", "127.0.0.1", "0.0.0.0", "fd00:96::50", "::"}
		s.Spec.LoadBalancerSourceRanges = []string{"0.0.0.0/0", "10.0.0.0/99", "::/0", ""}
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: long, Port: 80, Protocol: "SCTP", NodePort: 30080},
			corev1.ServicePort{Name: "x", Port: 0}, corev1.ServicePort{Name: "y", Port: 1, Protocol: "DCCP"})
	})
	crowd := newSlice(evil, false)
	crowd.Ports = append(crowd.Ports, discoveryv1.EndpointPort{Name: new(long), Protocol: new(corev1.ProtocolSCTP),
		Port: new(int32(1))})
	for i := range 1000 {
		e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.245.%d.%d", i%500/250, i%250+1)}}
		crowd.Endpoints = append(crowd.Endpoints, e, discoveryv1.Endpoint{Addresses: []string{"fd00::1"}},
			discoveryv1.Endpoint{})
	}
	m.put(crowd, evil)
	if got := len(m.reported[evil.Namespace+"/"+long]); got == 0 || got > 100+1000 {
		t.Errorf("%d sentences about it", got)
	}
	for _, to := range []netip.Addr{clusterIP, clusterIP6} {
		if got := count(10, "tcp", to, servicePort); got["a"] != 10 {
			t.Errorf("the good Service at %s: %v", to, got)
		}
	}
	if plan, _ := m.state.Plan(evil.Namespace + "/" + long); len(plan.Ports[0].ClusterEndpoints) != 500 {
		t.Errorf("%d endpoints of 500", len(plan.Ports[0].ClusterEndpoints))
	}
	must(t, m.Services.GetStore().Delete(evil))
	m.changed(evil.Namespace + "/" + long)
	m.sync()
	if got := ask("tcp", netip.MustParseAddr("10.96.0.66"), servicePort); got.err == nil {
		t.Errorf("the bad Service is gone: %s", got)
	}
}

// A load balancer learns which nodes have endpoints.
func TestHealthCheck(t *testing.T) {
	m := newMachine(t)
	s := newService(servicetest.Balanced("203.0.113.1"), servicetest.ExternalLocal,
		func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 31000 })
	m.put(append(newSlices(s, m.a, m.b, m.remote), s)...)
	defer m.nodePorts.Close()
	ask := func(status int, want string) {
		t.Helper()
		m.stranger.Do(func() {
			conn, err := net.DialTimeout("tcp", "192.0.2.1:31000", time.Second)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = fmt.Fprint(conn, "GET /healthz HTTP/1.0\r\n\r\n")
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			body := make([]byte, 200)
			n, _ := response.Body.Read(body)
			if got := strings.TrimSpace(string(body[:n])); response.StatusCode != status || got != want {
				t.Errorf("%d %s, want %d %s", response.StatusCode, got, status, want)
			}
		})
	}
	ask(200, `{"service":{"namespace":"ns","name":"web"},"localEndpoints":2,"serviceProxyHealthy":true}`)
	m.put(newSlices(s, m.remote)...)
	ask(503, `{"service":{"namespace":"ns","name":"web"},"localEndpoints":0,"serviceProxyHealthy":true}`)
	m.put(newService())
	m.stranger.Do(func() {
		if conn, err := net.DialTimeout("tcp", "192.0.2.1:31000", time.Second); err == nil {
			conn.Close()
			t.Error("the port answers for a Service that has none")
		}
	})
}
