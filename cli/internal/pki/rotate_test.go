package pki

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
)

// rotated carries out steps until none is left, and returns them.
func rotated(t *testing.T, layout plan.Layout, finish bool) (steps []plan.RotationStep) {
	t.Helper()
	for {
		have, err := Authorities(layout)
		if err != nil {
			t.Fatal(err)
		}
		step, err := plan.DecideRotation(have, finish)
		if err != nil {
			t.Fatalf("%+v: %v", have, err)
		}
		if step == plan.RotationRest {
			return steps
		}
		if steps = append(steps, step); len(steps) > 9 {
			t.Fatalf("it never ends: %v", steps)
		}
		if err := Rotate(layout, step, now); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

// believes reports whether a client that trusts a bundle accepts the certificate of a file for a use.
func believes(t *testing.T, layout plan.Layout, bundle, file string, use x509.ExtKeyUsage) bool {
	t.Helper()
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(bundle)) {
		t.Fatal("there is no authority")
	}
	shown, err := tls.LoadX509KeyPair(layout.PKI(file+".crt"), layout.PKI(file+".key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range shown.Certificate[1:] {
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			t.Fatal(err)
		}
		between.AddCert(certificate)
	}
	_, err = shown.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{use}})
	return err == nil
}

// At no step is there anybody, of those who know what there was before the step and of those who know what there is
// after it, who does not believe what is shown. Who knows the first authority alone goes on believing the apiserver;
// who has a certificate of it alone is believed until the last step.
func TestNobodyIsRefusedWhileTheAuthorityIsReplaced(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client, server)
	first := read(t, layout.PKI("ca.crt"))
	stale := plan.Layout{Dir: t.TempDir()} // an earlier copy
	if err := os.CopyFS(stale.Dir, os.DirFS(layout.Dir)); err != nil {
		t.Fatal(err)
	}
	want := []plan.RotationStep{plan.RotationMake, plan.RotationTrust, plan.RotationSwitch, plan.RotationTidy,
		plan.RotationFinish}
	for _, step := range want {
		have, err := Authorities(layout)
		if err != nil {
			t.Fatal(err)
		}
		got, err := plan.DecideRotation(have, step == plan.RotationFinish)
		if got != step {
			t.Fatalf("%+v: %q, %v, want %q", have, got, err, step)
		}
		before := read(t, layout.PKI("ca.crt"))
		if err := Rotate(layout, step, now); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		for _, renewed := range []bool{false, true} { // before and after the certificates follow
			if renewed {
				made := ensure(t, layout, now, client, server)
				var wanted []string
				if step == plan.RotationSwitch {
					wanted = []string{"admin", "apiserver"}
				}
				if !slices.Equal(made, wanted) {
					t.Errorf("%s: %v was made", step, made)
				}
			}
			for _, bundle := range []string{before, read(t, layout.PKI("ca.crt"))} {
				if !believes(t, layout, bundle, "admin", x509.ExtKeyUsageClientAuth) ||
					!believes(t, layout, bundle, "apiserver", x509.ExtKeyUsageServerAuth) {
					t.Errorf("%s, renewed %t: somebody is refused", step, renewed)
				}
			}
			if !believes(t, layout, first, "apiserver", x509.ExtKeyUsageServerAuth) {
				t.Errorf("%s, renewed %t: who knows the first authority refuses the apiserver", step, renewed)
			}
		}
		old := believes(t, stale, read(t, layout.PKI("ca.crt")), "admin", x509.ExtKeyUsageClientAuth)
		if finished := step == plan.RotationFinish; old == finished {
			t.Errorf("%s: a certificate of the first authority is believed: %t", step, old)
		}
	}
	if steps := rotated(t, layout, true); steps != nil {
		t.Errorf("after the last step there is %v", steps)
	}
	if left := names(t, layout); slices.Contains(left, "ca-next.key") || slices.Contains(left, "ca-next.crt") {
		t.Errorf("left are %v", left)
	}
	// The next rotation makes another one again.
	second := read(t, layout.PKI("ca.crt"))
	if steps := rotated(t, layout, false); !slices.Equal(steps, want[:4]) {
		t.Errorf("the second rotation does %v", steps)
	}
	ensure(t, layout, now, client, server)
	if bundle := read(t, layout.PKI("ca.crt")); !strings.HasSuffix(bundle, second) ||
		!believes(t, layout, second, "apiserver", x509.ExtKeyUsageServerAuth) {
		t.Errorf("the second rotation leaves %s", bundle)
	}
}

func names(t *testing.T, layout plan.Layout) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(layout.PKI("x")))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// writes are the files that each step changes, in its order: between any two of them keel may be killed.
var writes = map[plan.RotationStep][]string{
	plan.RotationMake:   {"ca-next.key", "ca-next.crt", "ca-bridge.crt"},
	plan.RotationTrust:  {"ca.crt"},
	plan.RotationSwitch: {"ca.key", "ca.crt"},
	plan.RotationTidy:   {"ca-next.key", "ca-next.crt"},
	plan.RotationFinish: {"ca.crt"},
}

// Wherever keel is killed, the next run goes on, be it keel init that comes first, and the end is the same.
func TestARotationIsCutOff(t *testing.T) {
	base := plan.Layout{Dir: t.TempDir()}
	ensure(t, base, now, client, server)
	first := read(t, base.PKI("ca.crt"))
	for {
		have, err := Authorities(base)
		if err != nil {
			t.Fatal(err)
		}
		step, err := plan.DecideRotation(have, len(have.Bundle) == 2)
		if err != nil {
			t.Fatal(err)
		}
		before := contents(t, base)
		if err := Rotate(base, step, now); err != nil {
			t.Fatal(err)
		}
		after := contents(t, base)
		expectChanged(t, step, before, after)
		for done := range writes[step] {
			for _, initFirst := range []bool{false, true} {
				layout := plan.Layout{Dir: t.TempDir()}
				if err := os.MkdirAll(filepath.Dir(layout.PKI("x")), 0o700); err != nil {
					t.Fatal(err)
				}
				for name, content := range before {
					replace(t, layout.PKI(name), content)
				}
				for _, name := range writes[step][:done] {
					replace(t, layout.PKI(name), cmp.Or(after[name], gone))
				}
				if initFirst {
					ensure(t, layout, now, client, server)
				}
				if rotated(t, layout, true) == nil { // none had begun
					rotated(t, layout, false)
					rotated(t, layout, true)
				}
				ensure(t, layout, now, client, server)
				expectWhole(t, layout, first)
			}
		}
		if step == plan.RotationFinish {
			return
		}
	}
}

// expectChanged checks that the step changes the files in writes.
func expectChanged(t *testing.T, step plan.RotationStep, before, after map[string]string) {
	t.Helper()
	all := maps.Clone(before)
	maps.Copy(all, after)
	var changed []string
	for name := range all {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	expected := slices.Sorted(slices.Values(writes[step]))
	if slices.Sort(changed); !slices.Equal(changed, expected) {
		t.Errorf("%s changes %v, and this test knows %v", step, changed, expected)
	}
}

// expectWhole checks that there is one authority, other than the first, that has signed everything.
func expectWhole(t *testing.T, layout plan.Layout, first string) {
	t.Helper()
	have, err := Authorities(layout)
	if err != nil || len(have.Bundle) != 1 || have.Key != have.Bundle[0] || have.Next != "" {
		t.Errorf("in the end there is %+v, %v", have, err)
	}
	if strings.Contains(read(t, layout.PKI("ca.crt")), first) {
		t.Error("the first authority is still trusted")
	}
	for path, found := range Read(layout, files()) {
		if strings.HasPrefix(path, "pki/") && (!found.Held.Vouched || found.Fault != "" || found.Missing) {
			t.Errorf("%s: %+v", path, found)
		}
	}
}

func contents(t *testing.T, layout plan.Layout) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names(t, layout) {
		all[name] = read(t, layout.PKI(name))
	}
	return all
}

// What is no rotation of keel's is left as it is.
func TestAuthoritiesOfOthers(t *testing.T) {
	for name, row := range map[string]struct {
		file, content string // gone takes it away
		want          string
	}{
		"a damaged bundle": {"ca.crt", "half a fi", "reading the mesh's authority"},
		"no bundle":        {"ca.crt", gone, "reading the mesh's authority"},
		"no key":           {"ca.key", gone, "reading the authority's key"},
		"half a key":       {"ca.key", "half a fi", "reading the authority's key"},
		"one twice":        {"ca.crt", "twice", "no rotation has put them"},
	} {
		layout := plan.Layout{Dir: t.TempDir()}
		ensure(t, layout, now, client)
		if row.content == "twice" {
			row.content = strings.Repeat(read(t, layout.PKI("ca.crt")), 2)
		}
		replace(t, layout.PKI(row.file), row.content)
		have, err := Authorities(layout)
		if err == nil {
			_, err = plan.DecideRotation(have, false)
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// A worker's agent is told of the authorities before the bundle says that it has been.
func TestForeignAuthorities(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	kubeconfig := layout.Node("vm").Kubeconfig()
	if err := EnsureForeignAuthorities(layout, kubeconfig, "https://192.0.2.1:6443", []byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an agent that has no kubeconfig got one: %v", err)
	}
	if err := EnsureBootstrapKubeconfig(kubeconfig, "https://192.0.2.1:6443", []byte("one\n"), "a-token"); err != nil {
		t.Fatal(err)
	}
	before := read(t, kubeconfig)
	for _, row := range []struct{ server, bundle string }{
		{"https://192.0.2.1:6443", "one\n"}, {"https://192.0.2.1:6443", "two\none\n"},
		{"https://mesh.example.com:6443", "two\none\n"}, {"https://192.0.2.9:7443", "two\n"},
	} {
		bundle := row.bundle
		if err := EnsureForeignAuthorities(layout, kubeconfig, row.server, []byte(bundle)); err != nil {
			t.Fatal(err)
		}
		want := plan.Layout{Dir: t.TempDir()}.Kubeconfig("x")
		if err := EnsureBootstrapKubeconfig(want, row.server, []byte(bundle), "a-token"); err != nil {
			t.Fatal(err)
		}
		if read(t, kubeconfig) != read(t, want) || read(t, layout.PKI("ca.crt")) != bundle {
			t.Errorf("after %+v the kubeconfig is\n%s\nand was\n%s", row, read(t, kubeconfig), before)
		}
	}
}
