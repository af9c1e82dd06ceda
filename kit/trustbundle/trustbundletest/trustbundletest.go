// Package trustbundletest makes certificates for tests of bundles.
package trustbundletest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"keelson.dev/kit/trustbundle"
)

// Authority is the PEM text of the certificate of an authority with a new key.
func Authority(t testing.TB, name string) string {
	t.Helper()
	return certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		IsCA: true})
}

// Leaf is that of a certificate which is no authority's.
func Leaf(t testing.TB, name string) string {
	t.Helper()
	return certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true})
}

func certificate(t testing.TB, template *x509.Certificate) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotAfter = big.NewInt(1), time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: trustbundle.BlockType, Bytes: der}))
}
