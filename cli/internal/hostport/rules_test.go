package hostport

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/hostports"
	"keelson.dev/kit/keptport"
	"keelson.dev/kit/nettest"
)

const (
	table    = "keelson-test-ports"
	bridge   = "keeltest-1"
	podPort  = 8080
	hostPort = 18080
)

// The test's networks: two Pods on the machine's bridge and a stranger on another interface of the machine.
var (
	gateway  = netip.MustParseAddr("10.244.1.1")
	podNet   = netip.MustParsePrefix("10.244.1.5/24")
	otherNet = netip.MustParsePrefix("10.244.1.6/24")
	outer    = netip.MustParseAddr("192.0.2.1")
	stranger = netip.MustParsePrefix("192.0.2.2/24")
)

type machine struct {
	pod, other, stranger *nettest.Peer
}

func newMachine(t *testing.T) machine {
	t.Helper()
	nettest.Own(t)
	pods := plan.Range{IPv4: netip.MustParsePrefix("10.244.0.0/16")}
	for _, err := range []error{
		host.EnableForwarding(false), host.SetNetworkRules("keelson-test", pods, pods),
		host.EnsureBridge(bridge, netip.PrefixFrom(gateway, podNet.Bits())),
		// The nodeagent does so.
		os.WriteFile("/proc/sys/net/ipv4/conf/"+bridge+"/route_localnet", []byte("1"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m := machine{
		pod:      nettest.NewPeer(t, "pod", bridge, podNet, gateway),
		other:    nettest.NewPeer(t, "other", bridge, otherNet, gateway),
		stranger: nettest.NewPeer(t, "stranger", "", stranger, outer),
	}
	if t.Failed() {
		t.FailNow()
	}
	return m
}

// serve answers every connection and datagram to the Pod's port.
func (m machine) serve(t *testing.T) {
	m.pod.Do(func() {
		listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", podPort))
		if err != nil {
			t.Error(err)
			return
		}
		packets, err := net.ListenPacket("udp4", fmt.Sprintf("0.0.0.0:%d", podPort))
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { listener.Close(); _ = packets.Close() })
		go func() {
			for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
				_, _ = conn.Write([]byte("x"))
				conn.Close()
			}
		}()
		go func() {
			buffer := make([]byte, 1)
			for _, from, err := packets.ReadFrom(buffer); err == nil; _, from, err = packets.ReadFrom(buffer) {
				_, _ = packets.WriteTo(buffer, from)
			}
		}()
	})
}

// The waits for an answer: one that is to come may take its time on a busy machine, one that is not is waited for in
// vain.
const (
	patience = time.Minute
	vain     = time.Second
)

// answers reports whether the Pod answers at an address of the machine; it waits longer if an answer is wanted.
func answers(network string, address netip.Addr, want bool) bool {
	wait := vain
	if want {
		wait = patience
	}
	conn, err := net.DialTimeout(network, netip.AddrPortFrom(address, hostPort).String(), wait)
	if err != nil {
		return false
	}
	defer conn.Close()
	if network == "udp4" {
		return exchange(conn, want)
	}
	return reads(conn, wait)
}

// exchange reports whether a datagram is answered. It retries if an answer is wanted, because the kernel may lose
// one.
func exchange(conn net.Conn, want bool) bool {
	for until := time.Now().Add(patience); ; {
		_, _ = conn.Write([]byte("x"))
		if reads(conn, vain) {
			return true
		}
		if !want || time.Now().After(until) {
			return false
		}
	}
}

func reads(conn net.Conn, wait time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(wait))
	n, _ := conn.Read(make([]byte, 1))
	return n == 1
}

func forward(protocol uint8, host netip.Addr) Forward {
	return Forward{Host: host, Port: hostPort, Protocol: protocol, Target: netip.AddrPortFrom(podNet.Addr(), podPort)}
}

// SET-149: a port of the machine leads to the Pod, from wherever one connects, until it is taken away.
func TestAPortLeadsToThePod(t *testing.T) {
	m := newMachine(t)
	m.serve(t)
	ask := func(when string, want bool) {
		t.Helper()
		here := func(call func()) { call() }
		for _, r := range []struct {
			from    string
			do      func(func())
			network string
			to      netip.Addr
		}{
			{"the machine", here, "tcp4", outer},
			{"the machine", here, "tcp4", gateway},
			{"the machine", here, "tcp4", netip.MustParseAddr("127.0.0.1")},
			{"the machine", here, "udp4", outer},
			{"another machine", m.stranger.Do, "tcp4", outer},
			{"another machine", m.stranger.Do, "udp4", outer},
			{"another Pod", m.other.Do, "tcp4", outer},
			{"the Pod itself", m.pod.Do, "tcp4", outer},
		} {
			r.do(func() {
				if got := answers(r.network, r.to, want); got != want {
					t.Errorf("%s: %s to %s over %s is answered: %v, want %v", when, r.from, r.to, r.network, got, want)
				}
			})
		}
	}
	ask("before", false)
	any := []Forward{forward(unix.IPPROTO_TCP, netip.Addr{}), forward(unix.IPPROTO_UDP, netip.Addr{})}
	if err := add(table, "sandbox-1", any, podNet, nil); err != nil {
		t.Fatal(err)
	}
	ask("with the port", true)
	// Another Pod's rules go and come without harm.
	target := netip.AddrPortFrom(otherNet.Addr(), podPort)
	otherPort := Forward{Port: hostPort + 1, Protocol: unix.IPPROTO_TCP, Target: target}
	if err := add(table, "sandbox-2", []Forward{otherPort}, otherNet, nil); err != nil {
		t.Fatal(err)
	}
	if err := remove(table, "sandbox-2"); err != nil {
		t.Fatal(err)
	}
	ask("after another Pod has gone", true)
	for range 2 {
		if err := remove(table, "sandbox-1"); err != nil {
			t.Fatal(err)
		}
	}
	ask("after", false)
	if n := len(rulesOf(t, hostports.Chain)) + len(rulesOf(t, chainLeaving)); n != 0 {
		t.Errorf("%d rules are left", n)
	}
	if n := len(rulesOf(t, "prerouting")); n != 1 {
		t.Errorf("%d rules lead to the ports after two Pods, want one", n)
	}
}

// A port of one address is not there on the others.
func TestAPortOfOneAddress(t *testing.T) {
	m := newMachine(t)
	m.serve(t)
	if err := add(table, "sandbox-1", []Forward{forward(unix.IPPROTO_TCP, outer)}, podNet, nil); err != nil {
		t.Fatal(err)
	}
	if one, another := answers("tcp4", outer, true), answers("tcp4", gateway, false); !one || another {
		t.Errorf("answered at %s: %v, at %s: %v; want the first alone", outer, one, gateway, another)
	}
}

// A flow that began before the Pod had the port reaches it, too: UDP has no beginning that the kernel could wait for.
func TestAFlowThatGoesOn(t *testing.T) {
	m := newMachine(t)
	m.serve(t)
	var conn net.Conn
	m.stranger.Do(func() {
		var err error
		if conn, err = net.Dial("udp4", netip.AddrPortFrom(outer, hostPort).String()); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	defer conn.Close()
	if exchange(conn, false) {
		t.Fatal("nobody is there and it is answered")
	}
	if err := add(table, "sandbox-1", []Forward{forward(unix.IPPROTO_UDP, netip.Addr{})}, podNet, nil); err != nil {
		t.Fatal(err)
	}
	if !exchange(conn, true) {
		t.Error("the flow is not answered")
	}
}

// No Pod has a port that the machine keeps: neither a new Pod, nor a Pod that had the port before it was kept, nor
// its existing flows.
func TestAPortThatTheMachineKeeps(t *testing.T) {
	kept := []keptport.Port{{Keeper: "x", Protocol: keptport.TCP, First: hostPort - 1, Last: hostPort},
		{Keeper: "y", Protocol: keptport.UDP, Address: outer, First: hostPort, Last: hostPort},
		{Keeper: "six", Protocol: keptport.UDP, Address: netip.IPv6Loopback(), First: hostPort, Last: hostPort}}
	all := []Forward{forward(unix.IPPROTO_TCP, netip.Addr{}), forward(unix.IPPROTO_UDP, netip.Addr{})}
	for name, before := range map[string]bool{"from the start": false, "from later on": true} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.serve(t)
			var flow net.Conn
			if before {
				if err := add(table, "sandbox-1", all, podNet, nil); err != nil {
					t.Fatal(err)
				}
				m.stranger.Do(func() {
					var err error
					if flow, err = net.Dial("udp4", netip.AddrPortFrom(outer, hostPort).String()); err != nil {
						t.Error(err)
						return
					}
					if !exchange(flow, true) {
						t.Error("the Pod does not answer before its port is kept")
					}
				})
				if t.Failed() {
					t.FailNow()
				}
				defer flow.Close()
				for range 2 {
					if err := hostports.Close(table, kept); err != nil {
						t.Fatal(err)
					}
				}
				if exchange(flow, false) {
					t.Error("the flow still reaches the Pod")
				}
			} else if err := add(table, "sandbox-1", all, podNet, kept); err != nil {
				t.Fatal(err)
			}
			for _, do := range []func(func()){func(call func()) { call() }, m.stranger.Do, m.other.Do} {
				do(func() {
					if answers("tcp4", outer, false) || answers("udp4", outer, false) {
						t.Error("the Pod answers at a port that the machine keeps")
					}
				})
			}
			if answers("tcp4", gateway, false) || !answers("udp4", gateway, true) {
				t.Error("what is kept of one address is kept of another, or what is kept of all of them is not")
			}
			// A port that is no longer kept is free.
			if err := hostports.Close(table, nil); err != nil {
				t.Fatal(err)
			}
			if !answers("tcp4", outer, true) {
				t.Error("the Pod does not answer although nothing is kept")
			}
		})
	}
}

// SET-149: a port that is kept at the loopback address is the machine's there, even if a Pod has the port at all
// addresses: another daemon uses it. Its keeper listens at no other address.
func TestAPortThatIsKeptOnTheLoopback(t *testing.T) {
	m := newMachine(t)
	m.serve(t)
	loopback := netip.MustParseAddr("127.0.0.1")
	listener, err := net.Listen("tcp4", netip.AddrPortFrom(loopback, hostPort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			accepted <- conn
		}
	}()
	kept := []keptport.Port{{Keeper: "streams", Protocol: keptport.TCP, Address: loopback, First: hostPort,
		Last: hostPort}}
	if err := add(table, "sandbox-1", []Forward{forward(unix.IPPROTO_TCP, netip.Addr{})}, podNet, kept); err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp4", listener.Addr().String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	select {
	case own := <-accepted:
		own.Close()
	case <-time.After(patience):
		t.Error("what is sent to the loopback address does not come to who keeps the port")
	}
	if !answers("tcp4", outer, true) {
		t.Error("the Pod does not answer at the other addresses")
	}
}

// Where no Pod has a port there is no table, and none is made.
func TestClosingWithoutATable(t *testing.T) {
	nettest.Own(t)
	if err := hostports.Close(table, keptport.NodePorts()); err != nil {
		t.Error(err)
	}
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	if tables, err := conn.ListTables(); err != nil || len(tables) > 0 {
		t.Errorf("%d tables, %v", len(tables), err)
	}
}

func rulesOf(t *testing.T, chain string) []*nftables.Rule {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	own := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: table}
	rules, err := conn.GetRules(own, &nftables.Chain{Name: chain, Table: own})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// Removing from a table that is not there is no error: the machine may have been restarted.
func TestRemoveWithoutATable(t *testing.T) {
	nettest.Own(t)
	if err := remove(table, "sandbox-1"); err != nil {
		t.Error(err)
	}
}
