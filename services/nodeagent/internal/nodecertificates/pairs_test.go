package nodecertificates

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"slices"
	"testing"
	"time"

	"keelson.dev/services/nodeagent/internal/pairtest"
)

// authority signs certificates of tests.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	made, key := pairtest.Sign(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mesh"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, nil, nil)
	pair, err := tls.X509KeyPair(made, key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate: pair.Leaf, key: pair.PrivateKey.(crypto.Signer)}
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
	return pairtest.Sign(t, c, a.certificate, a.key)
}
