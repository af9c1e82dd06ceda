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

// If a crash or an operator damages a pair, the next start makes it whole again.
func TestABrokenPairIsMadeAnew(t *testing.T) {
	for _, row := range []struct {
		name     string
		crt, key string // what is written; "" leaves the file, gone takes it away
		keeps    bool
	}{
		{"half a certificate", "half a fi", "", true},
		{"no certificate", gone, "", true},
		{"half a key", "", "half a fi", false},
		{"an empty key", "", "\n", false},
		{"no key", "", gone, false},
		{"neither", gone, gone, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			layout := plan.Layout{Dir: t.TempDir()}
			ensure(t, layout, now, client)
			before := read(t, layout.PKI("admin.key"))
			replace(t, layout.PKI("admin.crt"), row.crt)
			replace(t, layout.PKI("admin.key"), row.key)
			if got := ensure(t, layout, now, client); !slices.Equal(got, []string{"admin"}) {
				t.Errorf("%v was made", got)
			}
			if _, _, err := load(layout, "admin"); err != nil {
				t.Error(err)
			}
			if kept := read(t, layout.PKI("admin.key")) == before; kept != row.keeps {
				t.Errorf("the key was kept: %v", kept)
			}
		})
	}
}

const gone = "gone"

func replace(t *testing.T, file, content string) {
	t.Helper()
	var err error
	switch content {
	case "":
	case gone:
		err = os.Remove(file)
	default:
		err = os.WriteFile(file, []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A renewal replaces one file, so that no reader and no crash ever sees a certificate beside the key of another.
func TestARenewedCertificateKeepsItsKey(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client)
	key, certificate := read(t, layout.PKI("admin.key")), read(t, layout.PKI("admin.crt"))
	ensure(t, layout, now.AddDate(2, 0, 0), client)
	if read(t, layout.PKI("admin.crt")) == certificate {
		t.Error("it is not renewed")
	}
	if read(t, layout.PKI("admin.key")) != key {
		t.Error("its key is another one")
	}
}

// A crash before the CA's certificate was written, or its loss: what the key has signed is good again.
func TestTheCAKeepsItsKey(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now, client)
	key := read(t, layout.PKI("ca.key"))
	replace(t, layout.PKI("ca.crt"), gone)
	if got := ensure(t, layout, now, client); !slices.Equal(got, []string{"ca"}) {
		t.Errorf("%v was made", got)
	}
	if read(t, layout.PKI("ca.key")) != key {
		t.Error("the key of the CA is another one")
	}
}

// All clients and servers trust the CA, so an expired CA, or one whose key is elsewhere, is never replaced.
func TestTheCAIsNeverReplaced(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	ensure(t, layout, now)
	if _, err := Ensure(layout, nil, now.AddDate(20, 0, 0)); err == nil || !strings.Contains(err.Error(),
		"has expired") {
		t.Errorf("an expired CA: %v", err)
	}
	certificate, key := read(t, layout.PKI("ca.crt")), read(t, layout.PKI("ca.key"))
	replace(t, layout.PKI("ca.key"), gone)
	if _, err := Ensure(layout, nil, now); err == nil || !strings.Contains(err.Error(), "its key is not in") {
		t.Errorf("a CA whose key is elsewhere: %v", err)
	}
	if read(t, layout.PKI("ca.crt")) != certificate {
		t.Error("a CA whose key is elsewhere was replaced")
	}
	replace(t, layout.PKI("ca.key"), key)
	replace(t, layout.PKI("ca.crt"), "half a fi")
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
