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
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nettest"
)

func TestNetworkRulesComeAndGo(t *testing.T) {
	nettest.Own(t)
	for range 2 {
		setRules(t, "keelson-test")
	}
	setRules(t, "keelson-other")
	if rules := countRules(t); rules != 2 {
		t.Errorf("two tables hold %d rules, want one masquerade in each", rules)
	}
	for range 2 {
		if err := RemoveTables("keelson-test", "another"); err != nil {
			t.Fatal(err)
		}
	}
	if rules := countRules(t); rules != 1 {
		t.Errorf("%d rules are left, want the other table's", rules)
	}
}

func setRules(t *testing.T, table string) {
	t.Helper()
	err := SetNetworkRules(table, netip.MustParsePrefix("10.241.0.0/24"), netip.MustParsePrefix("10.244.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
}

// What further nodes send beyond the mesh comes from the machine; what they send to Pods does not.
func TestNodesReachBeyondTheMachine(t *testing.T) {
	nettest.Own(t)
	between, machine := netip.MustParsePrefix("10.241.0.0/24"), netip.MustParseAddr("10.241.0.1")
	for _, err := range []error{EnableForwarding(), EnsureBridge("keeltest-n", between, machine)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	setRules(t, "keelson-test")
	node := nettest.NewPeer(t, "node", "keeltest-n", netip.MustParsePrefix("10.241.0.2/24"), machine)
	for name, row := range map[string]struct{ address, gateway, seen string }{
		"outer": {"192.0.2.2/24", "192.0.2.1", "192.0.2.1"},
		"pod":   {"10.244.1.5/24", "10.244.1.1", "10.241.0.2"},
	} {
		address := netip.MustParsePrefix(row.address)
		peer := nettest.NewPeer(t, name, "", address, netip.MustParseAddr(row.gateway))
		var listener net.Listener
		var err error
		peer.Do(func() { listener, err = net.Listen("tcp4", address.Addr().String()+":7777") })
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		node.Do(func() {
			conn, err := net.DialTimeout("tcp4", listener.Addr().String(), 5*time.Second)
			if err != nil {
				t.Errorf("%s is not reached: %v", name, err)
				return
			}
			defer conn.Close()
			from, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer from.Close()
			if got := netip.MustParseAddrPort(from.RemoteAddr().String()).Addr().String(); got != row.seen {
				t.Errorf("%s sees the node as %s, want %s", name, got, row.seen)
			}
		})
	}
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
			continue // a hierarchy that nobody may use
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
