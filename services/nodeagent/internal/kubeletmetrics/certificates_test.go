package kubeletmetrics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// lasting returns a certificate that is valid for that long, or expired that long ago.
func lasting(t *testing.T, d time.Duration) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: time.Now().Add(d)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func encoded(certificate *tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
}

// The life of the agent's certificate is that of the one in the file now, negative after its expiry, and infinite
// without a certificate.
func TestClientLife(t *testing.T) {
	const name = "kubelet_certificate_manager_client_ttl_seconds gauge "
	file := filepath.Join(t.TempDir(), "pair.pem")
	connection := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: file}}
	expect(t, shown(t, ClientLife(connection)), name+"+Inf")
	for d, want := range map[time.Duration]string{90*time.Hour + 30*time.Second: "324000",
		-25*time.Hour + 30*time.Second: "-90000"} {
		if err := os.WriteFile(file, encoded(lasting(t, d)), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, roughly(shown(t, ClientLife(connection))), name+want)
	}
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, shown(t, ClientLife(connection)), name+"+Inf")
	connection.CertData = encoded(lasting(t, time.Hour+30*time.Second))
	expect(t, roughly(shown(t, ClientLife(connection))), name+"3600")
	expect(t, shown(t, ClientLife(&rest.Config{BearerToken: "token"})), name+"+Inf")
}

// The life of the serving certificate is that of the one that a client would get now.
func TestServerLife(t *testing.T) {
	const name = "kubelet_certificate_manager_server_ttl_seconds gauge "
	var err error
	pair := lasting(t, time.Hour+30*time.Second)
	life := ServerLife(func() (*tls.Certificate, error) { return pair, err })
	expect(t, roughly(shown(t, life)), name+"3600")
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	expect(t, roughly(shown(t, life)), name+"3600")
	pair = nil
	expect(t, shown(t, life), name+"+Inf")
	err = errors.New("not approved yet")
	expect(t, shown(t, life), name+"+Inf")
}
