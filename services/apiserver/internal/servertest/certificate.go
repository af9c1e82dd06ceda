package servertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/inproc"
)

// Authority signs the certificates by which the clients of one test identify themselves.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority that no server trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: newSigner(t)}
	template := newTemplate(pkix.Name{CommonName: "servertest"})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatalf("making the authority's certificate: %v", err)
	}
	return a
}

// Raw is its certificate in DER.
func (a *Authority) Raw() []byte { return a.certificate.Raw }

// PEM is its certificate.
func (a *Authority) PEM() []byte { return encoded("CERTIFICATE", a.certificate.Raw) }

// File writes its certificate to a file.
func (a *Authority) File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authority.crt")
	writeFile(t, path, string(a.PEM()))
	return path
}

// Trusted makes the server believe the authority's certificates.
func (a *Authority) Trusted(t testing.TB) func(*inproc.Config) {
	return func(config *inproc.Config) { config.ClientCAFile = a.File(t) }
}

// Client is a client of the server with a certificate in the name and the groups.
func (a *Authority) Client(t testing.TB, s *Server, name string, groups ...string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(a.Config(t, s, name, groups...))
	if err != nil {
		t.Fatalf("making the client of %s: %v", name, err)
	}
	return client
}

// Config is a connection to the server with a certificate in the name and the groups.
func (a *Authority) Config(t testing.TB, s *Server, name string, groups ...string) *restclient.Config {
	t.Helper()
	key := newSigner(t)
	subject := pkix.Name{CommonName: name, Organization: groups}
	der, err := x509.CreateCertificate(rand.Reader, newTemplate(subject), a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatalf("signing the certificate of %s: %v", name, err)
	}
	return &restclient.Config{Host: "https://" + s.Address(), QPS: -1,
		TLSClientConfig: restclient.TLSClientConfig{
			Insecure: true, CertData: encoded("CERTIFICATE", der), KeyData: encoded("EC PRIVATE KEY",
				marshalled(t, key)),
		}}
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func newSigner(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return key
}

func marshalled(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("encoding a key: %v", err)
	}
	return der
}

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
