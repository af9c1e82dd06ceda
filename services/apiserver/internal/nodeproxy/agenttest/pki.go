package agenttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// authority signs the certificates of one test.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key := newKey(t)
	template := newTemplate("agenttest")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	return &authority{certificate: sign(t, template, template, key, key), key: key}
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return key
}

func newTemplate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func sign(t testing.TB, template, parent *x509.Certificate, subject, signer crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, subject.Public(), signer)
	if err != nil {
		t.Fatalf("signing a certificate: %v", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("reading a certificate: %v", err)
	}
	return certificate
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func (a *authority) issue(t testing.TB, name string, ips ...net.IP) tls.Certificate {
	t.Helper()
	key, template := newKey(t), newTemplate(name)
	template.IPAddresses = ips
	certificate := sign(t, template, a.certificate, key, a.key)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func (a *authority) issueFiles(t testing.TB, name, certificatePath, keyPath string) {
	t.Helper()
	issued := a.issue(t, name)
	der, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	if err != nil {
		t.Fatalf("encoding a key: %v", err)
	}
	writePEM(t, certificatePath, "CERTIFICATE", issued.Certificate[0])
	writePEM(t, keyPath, "PRIVATE KEY", der)
}

func (a *authority) writeCertificate(t testing.TB, path string) {
	t.Helper()
	writePEM(t, path, "CERTIFICATE", a.certificate.Raw)
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatalf("writing %s: %v", path, err)
	}
}
