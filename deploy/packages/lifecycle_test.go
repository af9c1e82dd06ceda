package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// debian is a folder that dpkg takes for a root: scripts run on this machine and look there (DPKG_ROOT).
type debian struct{ root string }

func newDebian(t *testing.T) debian {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil || os.Geteuid() != 0 {
		t.Skip("dpkg and root are needed")
	}
	d := debian{t.TempDir()}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "etc/systemd/system"} {
		if err := os.MkdirAll(filepath.Join(d.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.put(t, "var/lib/dpkg/status", "Package: libc6\nStatus: install ok installed\nMaintainer: nobody\n"+
		"Architecture: "+runtime.GOARCH+"\nMulti-Arch: same\nVersion: 99\nDescription: C library\n")
	return d
}

func (d debian) put(t *testing.T, file, content string) {
	t.Helper()
	file = filepath.Join(d.root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// dpkg returns what it prints, and whether it did what it was asked for.
func (d debian) dpkg(t *testing.T, args ...string) (out string, done bool) {
	t.Helper()
	args = append(
		[]string{"--root=" + d.root, "--log=/dev/null", "--force-script-chrootless", "--force-unsafe-io"},
		args...)
	command := exec.CommandContext(t.Context(), "dpkg", args...)
	command.Env = append(os.Environ(), "LC_ALL=C")
	said, err := command.CombinedOutput()
	return string(said), err == nil
}

// does is dpkg that must do it.
func (d debian) does(t *testing.T, args ...string) string {
	t.Helper()
	out, done := d.dpkg(t, args...)
	if !done {
		t.Fatalf("dpkg %v failed:\n%s", args, out)
	}
	return out
}

// said counts the lines that are not dpkg's but the package's.
func said(out string) int { return strings.Count("\n"+out, "\nkeelson: ") }

// state is dpkg's of the package.
func (d debian) state(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "dpkg-query", "--admindir="+filepath.Join(d.root, "var/lib/dpkg"),
		"--showformat=${Status} ${Version}", "--show", "keelson").Output()
	if err != nil {
		return "none"
	}
	return string(out)
}

// tree lists what is in the root beside dpkg's own.
func (d debian) tree(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "find", d.root, "-path", d.root+"/var/lib/dpkg", "-prune", "-o",
		"-printf", "%P\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const (
	unit = "etc/systemd/system/keelson-apiserver.service"
	// ofInit and ofJoin are units as keel writes them for the programs of the package, ofOthers one for others.
	ofInit = "# Written by keel init for the mesh in /var/lib/keelson; it overwrites changes\n[Service]\n" +
		"ExecStart=/usr/lib/keelson/bin/keelson-apiserver \\\n  --data-dir=/var/lib/keelson\n"
	ofJoin = "# Written by keel join for the worker in /var/lib/keelson; it overwrites changes\n[Service]\n" +
		"ExecStart=/usr/lib/keelson/bin/keelson-nodeagent\n"
	ofOthers = "# Written by keel init for the mesh in /srv/keelson\n[Service]\n" +
		"ExecStart=/opt/keelson/bin/keelson-apiserver \\\n  --data-dir=/srv/keelson\n"
)

func TestPackageComesAndGoes(t *testing.T) {
	d := newDebian(t)
	before := d.tree(t)
	deb, _, _ := packed(t, fixture(t, "v1.2.3"))
	if out := d.does(t, "--install", deb); said(out) != 0 {
		t.Errorf("installing says something:\n%s", out)
	}
	if got, want := d.state(t), "install ok installed 1.2.3"; got != want {
		t.Errorf("the package is %s; want %s", got, want)
	}
	if target, err := filepath.EvalSymlinks(filepath.Join(d.root, "usr/bin/keel")); err != nil ||
		target != filepath.Join(d.root, "usr/lib/keelson/bin/keel") {
		t.Errorf("/usr/bin/keel leads to %s, %v", target, err)
	}
	newer, _, _ := packed(t, fixture(t, "v1.2.4"))
	if out := d.does(t, "--install", newer); said(out) != 0 {
		t.Errorf("an upgrade without a mesh says something:\n%s", out)
	}
	if content, err := os.ReadFile(filepath.Join(d.root, "usr/lib/keelson/bin/runc")); err != nil ||
		!strings.HasSuffix(string(content), "runcv1.2.4") {
		t.Errorf("the program is not the newer one: %v", err)
	}
	d.does(t, "--remove", "keelson")
	if after := d.tree(t); after != before {
		t.Errorf("before there was\n%sand after the removal\n%s", before, after)
	}
	d.does(t, "--purge", "keelson")
	if got := d.state(t); got != "none" {
		t.Errorf("after a purge the package is %s", got)
	}
}

func TestDataStaysAndPurgeSaysSo(t *testing.T) {
	d := newDebian(t)
	deb, _, _ := packed(t, fixture(t, "v1.2.3"))
	d.does(t, "--install", deb)
	d.put(t, "var/lib/keelson/pki/ca.key", "key")
	d.put(t, "var/lib/keelson/nodes/one/agent/local-volumes/pvc/data", "of somebody")
	data := d.tree(t)
	if out := d.does(t, "--purge", "keelson"); !strings.Contains(out, "keelson: /var/lib/keelson is kept") {
		t.Errorf("a purge says\n%s", out)
	}
	for file := range strings.Lines(d.tree(t)) {
		data = strings.Replace(data, "\n"+file, "\n", 1)
	}
	if strings.Contains(data, "var/lib/keelson") {
		t.Errorf("of the data is gone:\n%s", data)
	}
}

func TestUpgradeTellsWhoRunsAMesh(t *testing.T) {
	for name, test := range map[string]struct{ unit, want string }{
		"the first machine": {ofInit, "keel init starts anew"},
		"a worker":          {ofJoin, "keel join starts anew"},
		"other programs":    {ofOthers, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDebian(t)
			deb, _, _ := packed(t, fixture(t, "v1.2.3"))
			d.does(t, "--install", deb)
			d.put(t, unit, test.unit)
			newer, _, _ := packed(t, fixture(t, "v1.2.4"))
			out := d.does(t, "--install", newer)
			if said(out) != strings.Count(test.want, "keel") || !strings.Contains(out, test.want) {
				t.Errorf("an upgrade says\n%s\nwant %q", out, test.want)
			}
			if content, err := os.ReadFile(filepath.Join(d.root, unit)); err != nil || string(content) != test.unit {
				t.Errorf("the unit is %q, %v", content, err)
			}
		})
	}
}

func TestProgramsThatAMeshNeedsStay(t *testing.T) {
	d := newDebian(t)
	deb, _, _ := packed(t, fixture(t, "v1.2.3"))
	d.does(t, "--install", deb)
	whole := d.tree(t)
	refused := func(t *testing.T, verb, why string) {
		t.Helper()
		out, done := d.dpkg(t, verb, "keelson")
		if done || !strings.Contains(out, why) || !strings.Contains(out, "keel reset --yes") {
			t.Errorf("%s: done %t, and it says\n%s\nwant %q and how to end the mesh", verb, done, out, why)
		}
		if strings.Contains(out, "starts anew") {
			t.Errorf("%s: that the removal was refused is taken for an upgrade:\n%s", verb, out)
		}
		if got, want := d.state(t), " ok installed 1.2.3"; !strings.HasSuffix(got, want) {
			t.Errorf("%s: the package is %s; want %s", verb, got, want)
		}
	}
	t.Run("units", func(t *testing.T) {
		d.put(t, unit, ofInit)
		refused(t, "--remove", "  "+d.root+"/"+unit)
		refused(t, "--purge", "  "+d.root+"/"+unit)
		if err := os.Remove(filepath.Join(d.root, unit)); err != nil {
			t.Fatal(err)
		}
	})
	// A shim that keel up has left, or a daemon; and after an upgrade their programs are there no more.
	for _, program := range []string{"containerd-shim-runc-v2", "keelson-podgc"} {
		t.Run(program, func(t *testing.T) {
			run := exec.Command(filepath.Join(d.root, "usr/lib/keelson/bin", program))
			run.Args = []string{"sleep", "600"}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = run.Process.Kill()
				_ = run.Wait()
			}()
			refused(t, "--remove", "/usr/lib/keelson/bin/"+program)
			d.does(t, "--install", deb)
			refused(t, "--remove", "/usr/lib/keelson/bin/"+program+" (deleted)")
		})
	}
	if got := d.tree(t); got != whole {
		t.Errorf("files are\n%safterwards, and were\n%s", got, whole)
	}
	d.put(t, unit, ofOthers)
	d.does(t, "--remove", "keelson")
	if got := d.state(t); got != "deinstall ok config-files 1.2.3" {
		t.Errorf("the package is %s, and no mesh needs it", got)
	}
}

// TestWordsOfPackageManagers calls the scripts as dpkg and as rpm do, which says how many of the package will be left.
func TestWordsOfPackageManagers(t *testing.T) {
	d := debian{t.TempDir()}
	d.put(t, unit, ofInit)
	d.put(t, "var/lib/keelson/key", "key")
	for _, test := range []struct {
		script  string
		refuses bool
		says    string
		words   []string
	}{
		{"preremove.sh", true, "keel reset --yes", []string{"remove", "0"}},
		{"preremove.sh", false, "", []string{"upgrade", "1", "deconfigure", "failed-upgrade"}},
		{"postinstall.sh", false, "keel init starts anew", []string{"configure", "1", "2"}},
		{"postinstall.sh", false, "", []string{"abort-remove", "abort-upgrade"}},
		{"postremove.sh", false, "is kept", []string{"purge", "0"}},
		{"postremove.sh", false, "", []string{"remove", "upgrade", "1", "abort-install", "disappear"}},
	} {
		for _, word := range test.words {
			command := exec.CommandContext(t.Context(), "sh", filepath.Join("scripts", test.script), word)
			command.Env = append(os.Environ(), "DPKG_ROOT="+d.root)
			out, err := command.CombinedOutput()
			if (err != nil) != test.refuses || !strings.Contains(string(out), test.says) ||
				test.says == "" && len(out) > 0 {
				t.Errorf("%s %s: %v, and it says\n%s", test.script, word, err, out)
			}
		}
	}
}
