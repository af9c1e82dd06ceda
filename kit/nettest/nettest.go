// Package nettest gives a test a machine's network and Pods' networks of its own, so that nothing of the real ones
// changes.
package nettest

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Own moves the test into a network namespace of its own with nothing but the loopback interface.
func Own(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test's goroutine
	if err := Enter(); err != nil {
		t.Fatalf("a network namespace for the test, which needs root: %v", err)
	}
}

// Enter moves the calling thread, which must be locked, into a network namespace of its own.
func Enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}

// Peer is a network beside the test's: that of a Pod, or of another machine.
type Peer struct {
	thread int
	calls  chan func()
}

// NewPeer makes a network whose only way out is an interface of that address, with a gateway. Its other end is attached
// to the bridge, or gets the gateway's address itself if none is named.
func NewPeer(t *testing.T, name, bridge string, address netip.Prefix, gateway netip.Addr) *Peer {
	t.Helper()
	p := &Peer{calls: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the namespace ends with the thread
		p.thread = unix.Gettid()
		ready <- Enter()
		for call := range p.calls {
			call()
		}
	}()
	t.Cleanup(func() { close(p.calls) })
	must(t, <-ready)
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: name + "-in"}))
	inner, outer := link(t, name+"-in"), link(t, name)
	must(t, netlink.LinkSetNsPid(inner, p.thread))
	if bridge != "" {
		must(t, netlink.LinkSetMaster(outer, link(t, bridge)))
		must(t, netlink.LinkSetHairpin(outer, true))
	} else {
		must(t, netlink.AddrAdd(outer, parse(t, netip.PrefixFrom(gateway, address.Bits()))))
	}
	must(t, netlink.LinkSetUp(outer))
	p.Do(func() {
		inner := link(t, name+"-in")
		must(t, netlink.AddrAdd(inner, parse(t, address)))
		must(t, netlink.LinkSetUp(inner))
		must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: inner.Attrs().Index, Gw: gateway.AsSlice()}))
		// The first packets of a new interface may be lost: only a refusal shows that the gateway is there.
		_, err := net.DialTimeout("tcp4", netip.AddrPortFrom(gateway, 1).String(), 5*time.Second)
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s does not reach its gateway: %v", name, err)
		}
	})
	return p
}

// Do calls a function in the peer's network and waits for its end. Sockets made in it stay there.
func (p *Peer) Do(call func()) {
	done := make(chan struct{})
	p.calls <- func() { defer close(done); call() }
	<-done
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func link(t *testing.T, name string) netlink.Link {
	t.Helper()
	found, err := netlink.LinkByName(name)
	must(t, err)
	return found
}

func parse(t *testing.T, prefix netip.Prefix) *netlink.Addr {
	t.Helper()
	address, err := netlink.ParseAddr(prefix.String())
	must(t, err)
	return address
}
