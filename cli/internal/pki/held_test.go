package pki

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
)

// files are the files of the client, its kubeconfig and the server.
func files() []plan.CertificateFile { return plan.CertificateFiles([]plan.Certificate{client, server}) }

func TestRead(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client, server)
	if err := EnsureKubeconfig(layout, "admin", "https://127.0.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	found := Read(layout, files())
	for path, want := range map[string]string{"pki/ca.crt": "keelson-ca", "pki/admin.crt": "kubernetes-admin",
		"kubeconfig/admin.kubeconfig": "kubernetes-admin", "pki/apiserver.crt": "keelson-apiserver"} {
		got := found[path]
		if got.Held.User != want || got.Held.Signer != "keelson-ca" || !got.Held.Vouched || got.Fault != "" ||
			got.Missing || got.Held.CA != (path == "pki/ca.crt") ||
			got.Held.NotAfter.Before(now) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if found["kubeconfig/admin.kubeconfig"].Held.Sum != found["pki/admin.crt"].Held.Sum ||
		found["pki/admin.crt"].Held.Sum == found["pki/apiserver.crt"].Held.Sum {
		t.Error("the copy is not known as one")
	}
	if got := found["pki/apiserver.crt"].Held; !slices.Equal(got.Hosts, server.Hosts) ||
		!slices.Equal(got.Addresses, []netip.Addr{netip.MustParseAddr("127.0.0.1")}) {
		t.Errorf("the server's is for %v %v", got.Hosts, got.Addresses)
	}
	if got := found["pki/admin.crt"].Held; !slices.Equal(got.Groups, client.Groups) {
		t.Errorf("the client is in %v", got.Groups)
	}
}

// A broken file affects only its own report.
func TestReadOfWhatIsBroken(t *testing.T) {
	for name, row := range map[string]struct {
		file, content string
		path, says    string
	}{
		"no certificate":    {"pki/admin.crt", gone, "pki/admin.crt", "missing"},
		"half of one":       {"pki/admin.crt", "-----BEGIN", "pki/admin.crt", "failed to find any PEM data"},
		"no key":            {"pki/admin.key", gone, "pki/admin.crt", "its key is of no use"},
		"half a key":        {"pki/admin.key", "x", "pki/admin.crt", "failed to find any PEM data"},
		"no kubeconfig":     {"kubeconfig/admin.kubeconfig", gone, "kubeconfig/admin.kubeconfig", "missing"},
		"no user":           {"kubeconfig/admin.kubeconfig", "{}", "kubeconfig/admin.kubeconfig", "it has no user"},
		"no YAML":           {"kubeconfig/admin.kubeconfig", ":", "kubeconfig/admin.kubeconfig", "yaml"},
		"no authority":      {"pki/ca.crt", gone, "pki/ca.crt", "missing"},
		"half an authority": {"pki/ca.crt", "x", "pki/ca.crt", "it holds no PEM certificate"},
	} {
		layout := plan.Layout{Dir: t.TempDir()}
		ensure(t, layout, now, client, server)
		if err := EnsureKubeconfig(layout, "admin", "https://127.0.0.1:6443"); err != nil {
			t.Fatal(err)
		}
		replace(t, layout.Dir+"/"+row.file, row.content)
		for path, got := range Read(layout, files()) {
			said := got.Fault
			if got.Missing {
				said = "missing"
			}
			if path == row.path && !strings.Contains(said, row.says) || path != row.path && said != "" {
				t.Errorf("%s: of %s is said %q, want %q of %s", name, path, said, row.says, row.path)
			}
			if strings.Contains(row.file, "ca.crt") && got.Held.Vouched {
				t.Errorf("%s: nobody vouches for %s", name, path)
			}
		}
	}
}

// A certificate of another authority does not belong to the mesh, even if the authorities have the same name.
func TestAnotherAuthoritysCertificate(t *testing.T) {
	layout, other := plan.Layout{Dir: t.TempDir()}, plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client)
	ensure(t, other, now, client)
	if err := errors.Join(os.WriteFile(layout.PKI("admin.crt"), []byte(read(t, other.PKI("admin.crt"))), 0o600),
		os.WriteFile(layout.PKI("admin.key"), []byte(read(t, other.PKI("admin.key"))), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := Read(layout, files())["pki/admin.crt"]; got.Held.Vouched || got.Held.Signer != "keelson-ca" {
		t.Errorf("got %+v", got)
	}
	if got := ensure(t, layout, now, client); !slices.Equal(got, []string{"admin"}) {
		t.Errorf("made anew is %v", got)
	}
}

// Renew makes what it is told, due or not, and leaves the rest; without being asked it keeps the keys.
func TestRenew(t *testing.T) {
	for _, newKeys := range []bool{false, true} {
		layout := plan.Layout{Dir: t.TempDir()}
		ensure(t, layout, now, client, server)
		all := []string{
			"ca.crt",
			"ca.key",
			"admin.crt",
			"admin.key",
			"apiserver.crt",
			"apiserver.key",
			"service-account.key",
		}
		before := map[string]string{}
		for _, file := range all {
			before[file] = read(t, layout.PKI(file))
		}
		if err := Renew(layout, []plan.Certificate{client}, newKeys, now); err != nil {
			t.Fatal(err)
		}
		var changed []string
		for _, file := range all {
			if read(t, layout.PKI(file)) != before[file] {
				changed = append(changed, file)
			}
		}
		want := []string{"admin.crt"}
		if newKeys {
			want = append(want, "admin.key")
		}
		if !slices.Equal(changed, want) {
			t.Errorf("with new keys %t changed are %v", newKeys, changed)
		}
		if got := ensure(t, layout, now, client, server); got != nil {
			t.Errorf("with new keys %t keel init makes %v anew", newKeys, got)
		}
	}
}

// An expired authority signs nothing.
func TestRenewWithoutAnAuthority(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client)
	err := Renew(layout, []plan.Certificate{client}, true, now.AddDate(11, 0, 0))
	if err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("got %v", err)
	}
	if _, _, err := load(layout, "admin"); err != nil {
		t.Errorf("the pair of before is gone: %v", err)
	}
}
