package pki

import (
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/cli/internal/plan"
)

var (
	now    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	client = plan.Certificate{File: "admin", User: "kubernetes-admin", Groups: []string{"system:masters"}}
	server = plan.Certificate{File: "apiserver", User: "keelson-apiserver", Hosts: []string{"localhost"},
		Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
)

func ensure(t *testing.T, layout plan.Layout, at time.Time, certificates ...plan.Certificate) []string {
	t.Helper()
	written, err := Ensure(layout, certificates, at)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func TestWhatIsGoodIsUsedAgain(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	if got := ensure(t, layout, now, client, server); !slices.Equal(got, []string{"ca", "admin", "apiserver",
		"service-account"}) {
		t.Errorf("at first %v was made", got)
	}
	moved := server
	moved.Addresses = append(slices.Clone(server.Addresses), netip.MustParseAddr("192.0.2.7"))
	lost := moved
	lost.Addresses = server.Addresses
	promoted := client
	promoted.User = "someone-else"
	for _, step := range []struct {
		what string
		at   time.Time
		with []plan.Certificate
		want []string
	}{
		{"nothing changed", now.Add(time.Hour), []plan.Certificate{client, server}, nil},
		{"the machine has a new address", now, []plan.Certificate{client, moved}, []string{"apiserver"}},
		{"the machine has lost an address", now, []plan.Certificate{client, lost}, nil},
		{"another user", now, []plan.Certificate{promoted}, []string{"admin"}},
		{"two years later", now.AddDate(2, 0, 0), []plan.Certificate{promoted, lost}, []string{"admin", "apiserver"}},
	} {
		if got := ensure(t, layout, step.at, step.with...); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v was made, want %v", step.what, got, step.want)
		}
	}
}

func TestABrokenCertificateIsMadeAnew(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client)
	if err := os.WriteFile(layout.PKI("admin.crt"), []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ensure(t, layout, now, client); !slices.Equal(got, []string{"admin"}) {
		t.Errorf("%v was made", got)
	}
}

// Everybody trusts the CA: it is never replaced behind their backs.
func TestTheCAIsNeverReplaced(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now)
	if _, err := Ensure(layout, nil, now.AddDate(20, 0, 0)); err == nil || !strings.Contains(err.Error(),
		"has expired") {
		t.Errorf("an expired CA: %v", err)
	}
	if err := os.WriteFile(layout.PKI("ca.crt"), []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(layout, nil, now); err == nil || !strings.Contains(err.Error(), "reading the CA") {
		t.Errorf("a broken CA: %v", err)
	}
}

func TestCertificatesAreForTheirUse(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client, server)
	ca, _, err := load(layout, "ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for file, want := range map[string]x509.ExtKeyUsage{"admin": x509.ExtKeyUsageClientAuth,
		"apiserver": x509.ExtKeyUsageServerAuth} {
		certificate, _, err := load(layout, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
			_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
				KeyUsages: []x509.ExtKeyUsage{usage}})
			if (err == nil) != (usage == want) {
				t.Errorf("%s for use %v: %v", file, usage, err)
			}
		}
	}
	if certificate, _, err := load(layout, "apiserver"); err != nil || certificate.VerifyHostname("127.0.0.1") != nil {
		t.Errorf("it is not valid for its address: %v", err)
	}
}

func TestOnlyTheOwnerReadsTheFiles(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client)
	if err := EnsureKubeconfig(layout, "admin", "https://127.0.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"pki/*", "kubeconfig/*"} {
		files, err := filepath.Glob(filepath.Join(layout.Dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, %v", file, info.Mode(), err)
			}
		}
	}
}

func TestKubeconfigFollowsItsCertificate(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client)
	var texts []string
	for _, url := range []string{"https://127.0.0.1:6443", "https://127.0.0.1:6443", "https://127.0.0.1:7443"} {
		if err := EnsureKubeconfig(layout, "admin", url); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", layout.Kubeconfig("admin"))
		if err != nil || config.Host != url || len(config.CertData) == 0 || len(config.CAData) == 0 {
			t.Fatalf("got %+v, %v", config, err)
		}
		texts = append(texts, config.Host)
	}
	if texts[0] == texts[2] {
		t.Error("the server's new address is not in the file")
	}
	if err := EnsureKubeconfig(layout, "nosuch", "https://127.0.0.1:6443"); err == nil {
		t.Error("a kubeconfig without a certificate was made")
	}
}
