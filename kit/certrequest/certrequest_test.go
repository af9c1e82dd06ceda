package certrequest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

func made(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestParse(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, young, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der := made(t, key)
	good := block(BlockType, der)
	forged := bytes.Replace(der, []byte("ann"), []byte("bob"), 1)
	for _, row := range []struct {
		name string
		text []byte
		want string // what the refusal says; empty: none
	}{
		{"a request", good, ""},
		{"of another kind of key", block(BlockType, made(t, young)), ""},
		{"text in front", append([]byte("Certificate Request:\n  Data:\n"), good...), ""},
		{"empty lines behind", append(bytes.Clone(good), " \n\t\n"...), ""},
		{"nothing", nil, "PEM block type must be CERTIFICATE REQUEST"},
		{"no PEM", der, "PEM block type must be CERTIFICATE REQUEST"},
		{"a certificate", block("CERTIFICATE", der), "PEM block type must be CERTIFICATE REQUEST"},
		{"an older name", block("NEW CERTIFICATE REQUEST", der), "PEM block type must be CERTIFICATE REQUEST"},
		{"something behind", append(bytes.Clone(good), '.'), "must end with its PEM block"},
		{"two requests", append(bytes.Clone(good), good...), "must end with its PEM block"},
		{"a key behind", append(bytes.Clone(good), block("PRIVATE KEY", der)...), "must end with its PEM block"},
		{"no request", block(BlockType, []byte("hello")), "reading the request: "},
		{"bytes behind the request", block(BlockType, append(bytes.Clone(der), 0)), "reading the request: "},
		{"cut off", block(BlockType, der[:len(der)-1]), "reading the request: "},
		{"changed after it was signed", block(BlockType, forged), "the request must be signed with its own key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := bytes.Clone(row.text)
			request, err := Parse(row.text)
			switch {
			case row.want == "" && (err != nil || request.Subject.CommonName != "ann"):
				t.Errorf("%+v, %v", request, err)
			case row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)):
				t.Errorf("%v, want %q", err, row.want)
			}
			if !bytes.Equal(before, row.text) {
				t.Error("it changed what it read")
			}
		})
	}
}

// What a signature of a key of many bits costs grows with their square and more: a request of a few hundred KiB would
// keep a processor for minutes.
func TestNoKeyIsTooLargeToLookAt(t *testing.T) {
	for _, row := range []struct {
		bits int
		want string
	}{
		{8192, "the request must be signed with its own key"},
		{8193, "an RSA key must have at most 8192 bits, not 8193"},
		{1 << 20, "an RSA key must have at most 8192 bits, not 1048576"},
	} {
		_, err := Parse(block(BlockType, unsigned(t, row.bits)))
		if err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%d bits: %v, want %q", row.bits, err, row.want)
		}
	}
}

// unsigned is a request with an RSA key of that many bits, which no client has, and an invalid signature.
func unsigned(t *testing.T, bits int) []byte {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	public := &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 1<<31 - 1}
	info, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := asn1.Marshal(pkix.Name{CommonName: "ann"}.ToRDNSequence())
	if err != nil {
		t.Fatal(err)
	}
	algorithm := pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11},
		Parameters: asn1.NullRawValue}
	type body struct {
		Version       int
		Subject       asn1.RawValue
		PublicKey     asn1.RawValue
		RawAttributes []asn1.RawValue `asn1:"tag:0"`
	}
	der, err := asn1.Marshal(struct {
		Body      body
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{body{Subject: asn1.RawValue{FullBytes: subject}, PublicKey: asn1.RawValue{FullBytes: info}}, algorithm,
		asn1.BitString{Bytes: make([]byte, bits/8), BitLength: bits / 8 * 8}})
	if err != nil {
		t.Fatal(err)
	}
	return der
}
