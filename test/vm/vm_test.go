package vm

import (
	"net/netip"
	"testing"

	"keelson.dev/test/scenario"
)

func TestMain(m *testing.M) { Main(m) }

// long skips what is not part of the short form.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-vm runs it: machines in software are slow")
	}
}

// TestSystemd is the short form: a host as most users have it.
func TestSystemd(t *testing.T) {
	m := New(t, Config{Name: "systemd"})
	if got := m.Shell(t, "stat -fc %T /sys/fs/cgroup; cat /proc/1/comm"); got != "cgroup2fs\nsystemd" {
		t.Fatalf("the machine is not as users have them: %s", got)
	}
	up := m.Up(t, "--cgroup-driver="+systemd)
	t.Run("Limits", func(t *testing.T) { limits(t, up, systemd) })
	t.Run("Rollout", func(t *testing.T) { scenario.Rollout(t, up) })
	t.Run("Restart", func(t *testing.T) { restart(t, up) })
	t.Run("NothingIsLeft", func(t *testing.T) {
		up.Keel(t, "down")
		if got := m.result(t.Context(),
			"systemctl list-units --all --no-legend --plain 'keelson_*' 'cri-containerd-*'; "+
				"ls -d /sys/fs/cgroup/keelson*; pgrep -a 'keelson-|containerd|testserver'"); got !=
			"ls: cannot access '/sys/fs/cgroup/keelson*': No such file or directory" {
			t.Errorf("keel down left:\n%s", got)
		}
	})
}

// TestCgroupfs is the same host with the driver that leaves systemd out, and what else befalls a machine.
func TestCgroupfs(t *testing.T) {
	long(t)
	m := New(t, Config{Name: "cgroupfs"})
	m.Shell(t, "fallocate -l 256M /swap; chmod 600 /swap; mkswap /swap; swapon /swap")
	up := m.Up(t)
	t.Run("Limits", func(t *testing.T) { limits(t, up, cgroupfs) })
	t.Run("Swap", func(t *testing.T) { swap(t, up) })
	t.Run("Inside", func(t *testing.T) { scenario.Inside(t, up) })
	t.Run("Clock", func(t *testing.T) { clock(t, up) })
}

// TestStorage is about what the disk holds at the end.
func TestStorage(t *testing.T) {
	long(t)
	m := New(t, Config{Name: "storage"})
	// The kernel writes nothing that nobody asks it to: what the mesh needs again it must have asked for.
	m.Shell(t, "sysctl -w vm.dirty_writeback_centisecs=0 vm.dirty_expire_centisecs=360000")
	up := m.Up(t)
	t.Run("PowerCut", func(t *testing.T) { powerCut(t, up) })
	t.Run("FullDisk", func(t *testing.T) { fullDisk(t, up) })
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
