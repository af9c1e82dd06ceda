package vm

import (
	"net/netip"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// long skips a test in the short form.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-vm runs it: machines in software are slow")
	}
}

// TestHost is the short form: a host as most users have it, on which the nodeagent's part of the kernel is tested.
// (POD-165, POD-233, SAF-085)
func TestHost(t *testing.T) {
	m := New(t, Config{Name: "host", MemoryMiB: 1024})
	expectModern(t, m)
	out := m.Run(t, payloadMount+"/cgroup.test", "-test.v")
	for _, name := range []string{"TestHostLimitsHold/cgroupfs", "TestHostLimitsHold/systemd",
		"TestPodsComeAndGo/systemd",
		"TestScopeOfContainer"} {
		if !strings.Contains(out, "--- PASS: "+name+" ") {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
	if left := m.result(t.Context(), "ls -d /sys/fs/cgroup/keelson* || true"); !strings.Contains(left, "No such file") {
		t.Errorf("cgroups are left: %s", left)
	}
	before := m.AwaitBoot(t, "")
	m.Reboot(t)
	if m.AwaitBoot(t, "") == before {
		t.Error("the machine was not restarted")
	}
}

// expectModern checks that the machine is as the build machine is not.
func expectModern(t *testing.T, m *Machine) {
	t.Helper()
	if got := m.Shell(t, "stat -fc %T /sys/fs/cgroup; cat /proc/1/comm"); got != "cgroup2fs\nsystemd" {
		t.Fatalf("the machine is not as users have them: %s", got)
	}
}

// TestPrivateNetwork joins two machines.
func TestPrivateNetwork(t *testing.T) {
	long(t)
	network := NewSwitch(t)
	first := New(t, Config{Name: "first", MemoryMiB: 512, Switch: network,
		Address: netip.MustParsePrefix("192.168.77.1/24")})
	second := New(t, Config{Name: "second", MemoryMiB: 512, Switch: network,
		Address: netip.MustParsePrefix("192.168.77.2/24")})
	// What answers the test answers the neighbour too.
	first.Shell(t, "timeout 60 bash -c ': </dev/tcp/192.168.77.2/7000'")
	second.Shell(t, "timeout 60 bash -c ': </dev/tcp/192.168.77.1/7000'")
	first.Cut(t)
	first.PowerOn(t)
	second.Shell(t, "timeout 60 bash -c ': </dev/tcp/192.168.77.1/7000'")
}
