package telemetry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a CA that signs client certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return authority{cert: cert, key: key, file: file}
}

func (a authority) client(t *testing.T, groups ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), Subject: pkix.Name{CommonName: "test",
			Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func serve(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Listen(o, NewMetrics("test", "v0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func get(t *testing.T, s *Server, path string, certificates ...tls.Certificate) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("https://" + s.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestHealthNamesWhatFails(t *testing.T) {
	s := serve(t, Options{Address: "127.0.0.1:0"})
	s.Ready.Add("caches", func() error { return errors.New("not filled yet") })
	s.Ready.Add("disk", func() error { return nil })
	if code, body := get(t, s, "/livez"); code != http.StatusOK || body != "ok" {
		t.Errorf("livez: %d %q", code, body)
	}
	if code, body := get(t, s, "/readyz"); code != http.StatusServiceUnavailable || body != "caches: not filled yet\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	s.Ready.Add("caches", func() error { return nil })
	if code, _ := get(t, s, "/readyz"); code != http.StatusOK {
		t.Errorf("readyz after the check passes: %d", code)
	}
}

func TestMetricsTellTheBuild(t *testing.T) {
	s := serve(t, Options{Address: "127.0.0.1:0"})
	s.Metrics.Include(NewMetrics("library", "v9"))
	code, body := get(t, s, "/metrics")
	if code != http.StatusOK || !strings.Contains(body, `keelson_build_info{daemon="test",version="v0"} 1`) {
		t.Errorf("%d\n%s", code, body)
	}
	if strings.Contains(body, "library") {
		t.Error("a family that two registries offer is shown twice")
	}
	if code, _ := get(t, s, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("profiles are served without the flag: %d", code)
	}
}

func TestClientCertificatesGuardAllButHealth(t *testing.T) {
	ca := newAuthority(t)
	s := serve(t, Options{Address: "127.0.0.1:0", ClientCAFile: ca.file, Profiling: true})
	for path, certs := range map[string][]tls.Certificate{"/metrics": nil,
		"/debug/pprof/": {ca.client(t, "system:nodes")}} {
		if code, _ := get(t, s, path, certs...); code != http.StatusForbidden {
			t.Errorf("%s without an allowed certificate: %d", path, code)
		}
	}
	for _, group := range allowedGroups {
		if code, _ := get(t, s, "/metrics", ca.client(t, "other", group)); code != http.StatusOK {
			t.Errorf("metrics as %s: %d", group, code)
		}
	}
	if code, _ := get(t, s, "/livez"); code != http.StatusOK {
		t.Errorf("livez without a certificate: %d", code)
	}
}

func TestListenRefusesInOneSentence(t *testing.T) {
	busy, err := Listen(Options{Address: "127.0.0.1:0"}, NewMetrics("test", "v0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.listener.Close() })
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"occupied port":    {Options{Address: busy.Address()}, "address already in use"},
		"no port":          {Options{Address: "localhost"}, "must have the form HOST:PORT"},
		"cert without key": {Options{Address: "127.0.0.1:0", CertFile: "x"}, "must be given together"},
		"empty CA bundle":  {Options{Address: "127.0.0.1:0", ClientCAFile: empty}, "holds no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Listen(test.options, NewMetrics("test", "v0"))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "--status-") {
				t.Errorf("got %v, want a flag and %q", err, test.want)
			}
		})
	}
}
