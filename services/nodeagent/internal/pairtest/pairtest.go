// Package pairtest creates certificates and their keys for tests.
package pairtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

// Sign signs a certificate for a new key with the parent, and returns both in PEM; without a parent it is
// self-signed.
func Sign(t testing.TB, template, parent *x509.Certificate, signer crypto.Signer) (certificate, key []byte) {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, signer = template, made
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, made.Public(), signer)
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
