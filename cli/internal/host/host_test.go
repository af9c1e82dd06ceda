package host

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nettest"
)

func TestNetworkRulesComeAndGo(t *testing.T) {
	nettest.Own(t)
	for range 2 {
		setRules(t, "keelson-test")
	}
	setRules(t, "keelson-other")
	if rules := countRules(t); rules != 4 {
		t.Errorf("two tables of each family hold %d rules, want one masquerade in each", rules)
	}
	for range 2 {
		if err := RemoveTables("keelson-test", "another"); err != nil {
			t.Fatal(err)
		}
	}
	if rules := countRules(t); rules != 2 {
		t.Errorf("%d rules are left, want the other tables'", rules)
	}
}

func setRules(t *testing.T, table string) {
	t.Helper()
	err := SetNetworkRules(table, mustRange(t, "10.241.0.0/24,fd00:10:241::/64"),
		mustRange(t, "10.244.0.0/16,fd00:10:244::/56"))
	if err != nil {
		t.Fatal(err)
	}
}

// What further nodes send beyond the mesh comes from the machine; what they send to Pods does not.
func TestNodesReachBeyondTheMachine(t *testing.T) {
	nettest.Own(t)
	machine, machine6 := netip.MustParsePrefix("10.241.0.1/24"), netip.MustParsePrefix("fd00:10:241::1/64")
	for _, err := range []error{EnableForwarding(true), EnsureBridge("keeltest-n", machine, machine6)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	setRules(t, "keelson-test")
	node := nettest.NewPeer(t, "node", "keeltest-n", netip.MustParsePrefix("10.241.0.2/24"), machine.Addr())
	furnish(t, node, "node-in", "fd00:10:241::2/64", machine6.Addr())
	for name, row := range map[string]struct{ address, gateway, address6, gateway6, seen, seen6 string }{
		"outer": {"192.0.2.2/24", "192.0.2.1", "2001:db8::2/64", "2001:db8::1/64", "192.0.2.1", "2001:db8::1"},
		"pod": {"10.244.1.5/24", "10.244.1.1", "fd00:10:244:1::5/64", "fd00:10:244:1::1/64", "10.241.0.2",
			"fd00:10:241::2"},
	} {
		address, gateway6 := netip.MustParsePrefix(row.address), netip.MustParsePrefix(row.gateway6)
		peer := nettest.NewPeer(t, name, "", address, netip.MustParseAddr(row.gateway))
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.AddrAdd(link, ownAddress(gateway6))
		}
		if err != nil {
			t.Fatal(err)
		}
		furnish(t, peer, name+"-in", row.address6, gateway6.Addr())
		for at, seen := range map[netip.Addr]string{address.Addr(): row.seen,
			netip.MustParsePrefix(row.address6).Addr(): row.seen6} {
			if got := seenFrom(t, node, peer, at); got != seen {
				t.Errorf("%s sees the node at %s as %s, want %s", name, at, got, seen)
			}
		}
	}
}

// furnish gives a peer an address of IPv6 and a gateway.
func furnish(t *testing.T, peer *nettest.Peer, name, address string, gateway netip.Addr) {
	t.Helper()
	peer.Do(func() {
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.AddrAdd(link, ownAddress(netip.MustParsePrefix(address)))
		}
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice(),
				Dst: network(netip.PrefixFrom(netip.IPv6Unspecified(), 0))})
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// seenFrom is the address from which a node's connection comes to a peer.
func seenFrom(t *testing.T, node, peer *nettest.Peer, at netip.Addr) (seen string) {
	t.Helper()
	var listener net.Listener
	var err error
	peer.Do(func() { listener, err = net.Listen("tcp", netip.AddrPortFrom(at, 7777).String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	node.Do(func() {
		conn, err := net.DialTimeout("tcp", listener.Addr().String(), 5*time.Second)
		if err != nil {
			t.Errorf("%s is not reached: %v", at, err)
			return
		}
		defer conn.Close()
		from, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		seen = netip.MustParseAddrPort(from.RemoteAddr().String()).Addr().String()
	})
	return seen
}

func countRules(t *testing.T) int {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	chains, err := conn.ListChains()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, chain := range chains {
		rules, err := conn.GetRules(chain.Table, chain)
		if err != nil {
			t.Fatal(err)
		}
		count += len(rules)
	}
	return count
}

func TestUnmountBelow(t *testing.T) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("the tests of this package need root: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	inner := filepath.Join(dir, "a", "b")
	for _, point := range []string{filepath.Join(dir, "a"), inner} {
		if err := os.MkdirAll(point, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", point, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := UnmountBelow(dir); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil || strings.Contains(string(table), dir) {
		t.Errorf("mounts are left: %v", err)
	}
}

func TestCgroupsGoWithWhatRunsInThem(t *testing.T) {
	cgroup := "/keeltest-" + filepath.Base(t.TempDir()) + strconv.Itoa(os.Getpid())
	dirs := makeCgroups(t, cgroup, "node-1/pod")
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	inside := 0
	for _, dir := range dirs {
		if os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0o644) == nil {
			inside++
		}
	}
	if inside == 0 {
		t.Fatal("no hierarchy takes the process")
	}
	for range 2 {
		if err := RemoveCgroups(t.Context(), cgroup); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Wait(); err == nil {
		t.Error("the process inside ended by itself")
	}
	for _, dir := range dirs {
		if exists(dir) {
			t.Errorf("%s is left", dir)
		}
	}
}

// makeCgroups makes a cgroup in every hierarchy of the machine.
func makeCgroups(t *testing.T, cgroup, below string) []string {
	t.Helper()
	roots, err := filepath.Glob(cgroupMount + "/*/cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, root := range append(roots, cgroupMount+"/cgroup.procs") {
		if !exists(root) || strings.HasSuffix(filepath.Dir(root), ".slice") {
			continue
		}
		dir := filepath.Join(filepath.Dir(root), cgroup, below)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			continue // a hierarchy that cannot be used
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

func TestKillByArgument(t *testing.T) {
	child := exec.Command("sleep", "601.25")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	if n := KillByArgument("sleep", "601"); n != 0 {
		t.Errorf("part of an argument stood for it, %d times", n)
	}
	if n := KillByArgument("nosuchprogram", "601.25"); n != 0 {
		t.Errorf("another program was hit, %d times", n)
	}
	if n := KillByArgument("sleep", "601.25"); n != 1 {
		t.Errorf("%d processes were hit, want 1", n)
	}
	if err := child.Wait(); err == nil {
		t.Error("it ended by itself")
	}
}

func TestPortFree(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := netip.MustParseAddrPort(listener.Addr().String())
	if PortFree(taken.Addr(), int(taken.Port())) {
		t.Error("a port with a listener counts as free")
	}
	listener.Close()
	if !PortFree(taken.Addr(), int(taken.Port())) {
		t.Error("a port without one counts as taken")
	}
}
