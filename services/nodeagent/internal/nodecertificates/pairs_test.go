package nodecertificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"
)

// authority signs certificates of tests.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mesh"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// leaf is the client certificate of a node, before it is signed.
func leaf(node string, from, to time.Time) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: to,
		Subject:     pkix.Name{CommonName: userPrefix + node, Organization: []string{group}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

func with(c *x509.Certificate, usages ...x509.ExtKeyUsage) *x509.Certificate {
	c.ExtKeyUsage = usages
	return c
}

func grouped(c *x509.Certificate, groups ...string) *x509.Certificate {
	c.Subject.Organization = groups
	return c
}

func named(c *x509.Certificate, user string) *x509.Certificate {
	c.Subject.CommonName = user
	return c
}

// pair signs a certificate for a new key and returns both in PEM.
func (a *authority) pair(t *testing.T, c *x509.Certificate) []byte {
	t.Helper()
	certificate, key := a.sign(t, c)
	return slices.Concat(certificate, key)
}

func (a *authority) sign(t *testing.T, c *x509.Certificate) (certificate, key []byte) {
	t.Helper()
	made := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, made.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
