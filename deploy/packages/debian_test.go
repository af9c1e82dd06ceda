package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// machine is a Debian in a folder, with nothing but what each Debian has.
type machine struct{ root string }

// newMachine needs the network, and a mount namespace of its own: debootstrap mounts in the folder what programs there
// look for.
func newMachine(t *testing.T) machine {
	t.Helper()
	if os.Getenv("KEELSON_PACKAGES") == "" {
		t.Skip("make test-packages runs it: a Debian is fetched for it")
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Skip("debootstrap is missing; make vm-tools installs it where there is apt")
	}
	root, err := os.MkdirTemp("", "keelson-debian-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(t, root) })
	if out, err := exec.CommandContext(t.Context(), "debootstrap", "--variant=minbase", "bookworm", root).
		CombinedOutput(); err != nil {
		t.Fatalf("debootstrap got no Debian: %v\n%s", err, out[max(0, len(out)-500):])
	}
	return machine{root}
}

// removeTree removes nothing of what is mounted below a folder.
func removeTree(t *testing.T, root string) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var mounts []string
	for line := range strings.Lines(string(table)) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, root+"/") {
			mounts = append(mounts, point)
		}
	}
	for _, point := range slices.Backward(mounts) {
		if err := syscall.Unmount(point, 0); err != nil {
			t.Fatalf("%s stays, for %s is mounted in it: %v", root, point, err)
		}
	}
	if err := os.RemoveAll(root); err != nil {
		t.Error(err)
	}
}

// try runs a line of shell there and returns all that it prints.
func (m machine) try(ctx context.Context, line string) (string, error) {
	var out bytes.Buffer
	command := exec.CommandContext(ctx, "chroot", m.root, "/bin/sh", "-ec", line)
	command.Stdout, command.Stderr = &out, &out
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	err := command.Run()
	return out.String(), err
}

func (m machine) run(t *testing.T, line string) string {
	t.Helper()
	out, err := m.try(t.Context(), line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

// bring copies a package there.
func (m machine) bring(t *testing.T, file, name string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.root, "tmp", name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// files lists what is there, without what package managers and the system keep for themselves.
func (m machine) files(t *testing.T) string {
	t.Helper()
	return m.run(t, `find / -xdev \( -path /tmp -o -path /proc -o -path /dev -o -path /sys -o -path /var/cache `+
		`-o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /root \) -prune `+
		`-o -print | sort`)
}

// built is the package of a kind that `make packages` has made.
func built(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("KEELSON_PACKAGES"), pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d packages are at %s, %v", len(found), pattern, err)
	}
	return found[0]
}

// commands are those that show that programs start on the machine.
const commands = `keel --version
test "$(readlink -f "$(command -v keel)")" = /usr/lib/keelson/bin/keel
for shell in bash zsh fish; do keel completion $shell >/tmp/$shell; done
bash -n /tmp/bash && bash -n /usr/share/bash-completion/completions/keel
cd /usr/lib/keelson/bin
for daemon in keelson-*; do ./$daemon --version; done
./kubectl version --client && ./runc --version && ./containerd --version && ./ctr --version
./containerd-shim-runc-v2 -v
for plugin in cni/*; do CNI_COMMAND=VERSION $plugin </dev/null; done`

func TestInDebian(t *testing.T) {
	m := newMachine(t)
	m.run(t, "apt-get update && apt-get install --yes --no-install-recommends rpm")
	old, oldRPM, _ := packed(t, fixture(t, "abc1234"))
	m.bring(t, old, "old.deb")
	m.bring(t, oldRPM, "old.rpm")
	m.bring(t, built(t, "*.deb"), "new.deb")
	m.bring(t, built(t, "*.rpm"), "new.rpm")
	before := m.files(t)
	t.Run("Dependencies", func(t *testing.T) {
		out := m.run(t, "apt-get install --simulate /tmp/new.deb && apt-cache show uidmap bash-completion")
		for _, want := range []string{"Inst keelson ", "Inst systemd ", "Inst kmod ", "Inst ca-certificates "} {
			if !strings.Contains(out, want) {
				t.Errorf("apt would not: %s\n%s", want, out)
			}
		}
	})
	for _, kind := range []struct{ name, install, upgrade, remove, purge string }{
		{"deb", "apt-get install --yes --no-install-recommends /tmp/old.deb",
			"apt-get install --yes --no-install-recommends /tmp/new.deb", "apt-get remove --yes keelson",
			"apt-get purge --yes keelson"},
		// Debian's own database of RPM knows of no C library.
		{"rpm", "rpm --install --nodeps /tmp/old.rpm", "rpm --upgrade --nodeps /tmp/new.rpm", "rpm --erase keelson",
			"true"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			m.run(t, kind.install)
			m.run(t, "mkdir -p /etc/systemd/system /var/lib/keelson && echo key >/var/lib/keelson/key && cat >/"+unit+
				" <<'END'\n"+ofInit+"END")
			if out := m.run(t, kind.upgrade); !strings.Contains(out, "keel init starts anew") {
				t.Errorf("the upgrade says\n%s", out)
			}
			t.Log(m.run(t, commands))
			if out, err := m.try(t.Context(), kind.remove); err == nil || !strings.Contains(out, "keel reset --yes") {
				t.Errorf("the programs that a mesh needs are removed: %v\n%s", err, out)
			}
			m.run(t, "test -x /usr/lib/keelson/bin/keel && rm /"+unit+" && rmdir --ignore-fail-on-non-empty "+
				"/etc/systemd/system /etc/systemd")
			out := m.run(t, kind.remove+"; "+kind.purge)
			if !strings.Contains(out, "keelson: /var/lib/keelson is kept") {
				t.Errorf("nothing is said of the data:\n%s", out)
			}
			m.run(t, "rm /var/lib/keelson/key && rmdir /var/lib/keelson")
			if after := m.files(t); after != before {
				t.Errorf("what is left, or gone: %s", m.difference(t, before, after))
			}
		})
	}
}

// difference shows which lines two texts do not share.
func (m machine) difference(t *testing.T, before, after string) string {
	t.Helper()
	for name, content := range map[string]string{"before": before, "after": after} {
		if err := os.WriteFile(filepath.Join(m.root, "tmp", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := m.try(t.Context(), "diff /tmp/before /tmp/after")
	return out
}
