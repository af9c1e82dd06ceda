package host

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"keelson.dev/kit/nettest"
)

// A node in a network of its own reaches the machine and beyond, however often its network is made, and leaves nothing.
func TestANodesNetworkComesAndGoes(t *testing.T) {
	nettest.Own(t)
	prefix := netip.MustParsePrefix
	gateways := []netip.Prefix{prefix("10.241.0.1/24"), prefix("fd00:10:241::1/64")}
	machine := netip.MustParseAddr("192.0.2.7")
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = errors.Join(netlink.AddrAdd(lo, ownAddress(netip.PrefixFrom(machine, 32))),
			netlink.AddrAdd(lo, ownAddress(prefix("2001:db8::7/128"))))
	}
	if err == nil {
		err = EnsureBridge("keeltest-n", gateways...)
	}
	if err != nil {
		t.Fatal(err)
	}
	node := NodeNetwork{File: filepath.Join(t.TempDir(), "netns", "node-2"), Link: "keeltest-v2", Bridge: "keeltest-n",
		Addresses: []netip.Prefix{prefix("10.241.0.2/24"), prefix("fd00:10:241::2/64")}, Gateways: gateways,
		Machine: machine, MTU: 1400}
	for range 2 {
		if err := EnsureNode(node); err != nil {
			t.Fatal(err)
		}
	}
	expectReached(t, node.File, "10.241.0.1", "192.0.2.7", "fd00:10:241::1", "2001:db8::7")
	if outer, err := netlink.LinkByName(node.Link); err != nil || outer.Attrs().MTU != 1400 {
		t.Errorf("the node's link is %v, %v, want one that carries 1400 bytes", outer, err)
	} else if port, err := netlink.LinkGetProtinfo(outer); err != nil || !port.Hairpin {
		t.Errorf("the node's link takes nothing back that came by it, which a Service may ask for: %v, %v", port, err)
	}
	// An interrupted one is made whole: here the namespace is gone, and the machine's end of the link is there.
	if err := os.Rename(node.File, node.File+"-x"); err == nil {
		t.Fatal("a namespace that is kept was moved")
	}
	link := node.Link
	node.Link = "keeltest-none"
	if err := RemoveNode(node); err != nil {
		t.Fatal(err)
	}
	node.Link = link
	if err := EnsureNode(node); err != nil {
		t.Fatal(err)
	}
	expectReached(t, node.File, "10.241.0.1", "2001:db8::7")
	for range 2 {
		if err := RemoveNode(node); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(node.File); err == nil {
		t.Error("the file of the namespace is left")
	}
	if _, err := netlink.LinkByName(node.Link); err == nil {
		t.Error("the machine's end of the link is left")
	}
}

// expectReached dials from inside of a network; a refusal shows that the address is there.
func expectReached(t *testing.T, file string, addresses ...string) {
	t.Helper()
	own, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	inside, err := netns.GetFromPath(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inside.Close() }()
	for _, address := range addresses {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, "7777"))
		if err != nil {
			t.Fatal(err)
		}
		if err := netns.Set(inside); err != nil {
			t.Fatal(err)
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "7777"), 5*time.Second)
		if err == nil {
			conn.Close()
		}
		if back := netns.Set(own); back != nil {
			t.Fatal(back)
		}
		listener.Close()
		if err != nil {
			t.Errorf("the node does not reach %s: %v", address, err)
		}
	}
}

// Each network namespace has ports of its own: what listens in one takes nothing from another.
func TestPortsAreOfTheirNamespace(t *testing.T) {
	nettest.Own(t)
	dir := t.TempDir()
	file, none := filepath.Join(dir, "node-2"), filepath.Join(dir, "none")
	inside, err := ensureNamespace(file)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close() //nolint:errcheck // a handle without contents
	defer func() {
		if err := RemoveNode(NodeNetwork{File: file, Link: "keeltest-none"}); err != nil {
			t.Error(err)
		}
	}()
	listen := func() net.Listener {
		listener, err := net.Listen("tcp4", "127.0.0.1:10250")
		if err != nil {
			t.Fatal(err)
		}
		return listener
	}
	own, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close() //nolint:errcheck // a handle without contents
	expect := func(when string, machine, node bool) {
		t.Helper()
		if got := PortFree(netip.IPv4Unspecified(), 10250); got != machine {
			t.Errorf("%s: free on the machine: %v", when, got)
		}
		if got := PortFreeIn(file, 10250); got != node {
			t.Errorf("%s: free on the node: %v", when, got)
		}
		if !PortFreeIn(none, 10250) {
			t.Errorf("%s: a namespace that is not there has no free port", when)
		}
	}
	expect("nobody listens", true, true)
	taken := listen()
	expect("the machine listens", false, true)
	taken.Close()
	if err := netns.Set(inside); err != nil {
		t.Fatal(err)
	}
	taken = listen()
	if err := netns.Set(own); err != nil {
		t.Fatal(err)
	}
	expect("the node listens", true, false)
	taken.Close()
}
