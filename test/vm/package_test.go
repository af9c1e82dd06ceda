package vm

import (
	"strings"
	"testing"
)

// installPackage installs the programs again where they are, which is what an upgrade does: it says nothing of
// versions.
const installPackage = "dpkg --install " + payloadMount + "/keelson.deb"

// TestPackage takes a mesh through the life of its package.
func TestPackage(t *testing.T) {
	long(t)
	m := New(t, Config{Name: "packaged", MemoryMiB: 3072, Package: true})
	if out := m.Shell(t, installPackage); strings.Contains(out, "keelson: ") {
		t.Errorf("installing it says\n%s", out)
	}
	m.Shell(t, "! ls /etc/systemd/system | grep keelson- | grep -v guest && ! pgrep -l '^(keelson-|containerd)'")
	t.Log(m.Shell(t, "keel init --timeout 10m"))
	m.kubectl(t, packaged+deploy)
	m.await(t, packaged+containers, "0 true, 0 true, 0 true,")
	for _, step := range []struct {
		name string
		test func(t *testing.T, m *Machine)
	}{{"Upgrade", upgradePackage}, {"Remove", removePackage}} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, m) }) {
			return
		}
	}
}

// packaged lets a line of shell find kubectl.
const packaged = "export PATH=/usr/lib/keelson/bin:$PATH\n"

// upgradePackage checks that an upgrade stops no process, and that keel init afterwards stops no Pod.
func upgradePackage(t *testing.T, m *Machine) {
	daemonsBefore, before := m.Shell(t, daemons), m.Shell(t, processes)
	if strings.Count(before, "\n") != 2 {
		t.Errorf("the containers' processes are\n%s\nwant 3", before)
	}
	if out := m.Shell(t, installPackage); !strings.Contains(out, "keelson: ") || !strings.Contains(out, "keel init") {
		t.Errorf("who upgrades is not told of the mesh:\n%s", out)
	}
	if after := m.Shell(t, daemons); after != daemonsBefore {
		t.Errorf("the daemons were\n%s\nand are after the upgrade\n%s", daemonsBefore, after)
	}
	t.Log(m.Shell(t, "keel init --timeout 10m"))
	was := strings.Split(daemonsBefore, "\n")
	for _, line := range strings.Split(m.Shell(t, daemons), "\n") {
		for _, one := range was {
			if line == one && strings.HasPrefix(line, "MainPID=") {
				t.Errorf("a daemon goes on with the program from before: %s", line)
			}
		}
	}
	m.await(t, packaged+"kubectl exec deployment/twice -- /bin/testserver echo here", "here")
	m.await(t, packaged+containers, "0 true, 0 true, 0 true,")
	if after := m.Shell(t, processes); after != before {
		t.Errorf("the containers' processes were\n%s\nand are\n%s", before, after)
	}
}

// removePackage is refused while there is the mesh, and leaves its data.
func removePackage(t *testing.T, m *Machine) {
	daemonsBefore, before := m.Shell(t, daemons), m.Shell(t, processes)
	if out := m.Shell(t, "! dpkg --purge keelson 2>&1"); !strings.Contains(out, "keelson-apiserver.service") ||
		!strings.Contains(out, "keel reset --yes") {
		t.Errorf("that it is needed is not said:\n%s", out)
	}
	if after := m.Shell(t, daemons) + m.Shell(t, processes); after != daemonsBefore+before {
		t.Errorf("a removal that was refused has ended something:\n%s\nbefore there was\n%s", after,
			daemonsBefore+before)
	}
	t.Log(m.Shell(t, "keel reset --yes"))
	if out := m.Shell(t, "dpkg --purge keelson 2>&1"); !strings.Contains(out, "/var/lib/keelson is kept") {
		t.Errorf("nothing is said of the data:\n%s", out)
	}
	if got := m.result(t.Context(), left); got != "" {
		t.Errorf("it left:\n%s", got)
	}
	m.Shell(t, "test ! -e /usr/lib/keelson && test ! -e /usr/bin/keel && ! dpkg --status keelson 2>/dev/null && "+
		"test -s /var/lib/keelson/pki/ca.key")
}
