package discovery

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cluster-bootstrap/token/jws"
)

var token = Token{"abcdef", "0123456789abcdef"}

func TestParseToken(t *testing.T) {
	for text, good := range map[string]bool{
		"abcdef.0123456789abcdef": true, "000000.zzzzzzzzzzzzzzzz": true,
		"": false, "abcdef": false, "abcdef.0123456789abcde": false, "abcdef.0123456789abcdef0": false,
		"abcde.0123456789abcdef": false, "Abcdef.0123456789abcdef": false, "abcdef.0123456789abcdeF": false,
		"abcdef.0123456789abcdef\n": false, " abcdef.0123456789abcdef": false, "abcdef:0123456789abcdef": false,
	} {
		got, err := ParseToken(text)
		if (err == nil) != good || good && got.String() != text {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		// The typed text may be a secret with one wrong letter.
		if secret := strings.TrimSpace(text); err != nil && len(secret) > 6 && strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in the sentence %v", text, err)
		}
	}
}

func TestParsePins(t *testing.T) {
	digits := strings.Repeat("0123456789abcdef", 4)
	for text, good := range map[string]bool{
		"sha256:" + digits: true, "SHA256:" + strings.ToUpper(digits): true, digits: false, "sha256:": false,
		"sha256:" + digits[1:]: false, "sha256:" + digits + "0": false, "sha512:" + digits: false,
		"sha256:g" + digits[1:]: false,
	} {
		got, err := ParsePins([]string{text})
		if (err == nil) != good || good && !slices.Equal(got, []string{"sha256:" + digits}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1:6443", "192.0.2.1:7443": "192.0.2.1:7443", "api.example.com": "api.example.com:6443",
		"api.example.com:1": "api.example.com:1", "[2001:db8::1]:65535": "[2001:db8::1]:65535",
		"": "", "192.0.2.1:": "", "192.0.2.1:0": "", "192.0.2.1:65536": "", "https://192.0.2.1:6443": "", ":6443": "",
		"a b": "", "192.0.2.1:6443/x": "", "a_b:6443": "",
	} {
		if got, err := ParseAddress(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// A server that does not know the secret cannot give a false address of the mesh, or replace the mesh's answer.
func TestCheckSignature(t *testing.T) {
	const content = "kind: Config"
	sign := func(content, id, secret string) string {
		signature, err := jws.ComputeDetachedSignature(content, id, secret)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	good := sign(content, token.ID, token.Secret)
	for name, row := range map[string]struct {
		info map[string]string
		want string
	}{
		"signed": {map[string]string{"kubeconfig": content, "jws-kubeconfig-abcdef": good}, ""},
		"signed by others too": {map[string]string{"kubeconfig": content, "jws-kubeconfig-abcdef": good,
			"jws-kubeconfig-zzzzzz": "x"}, ""},
		"by another token alone": {map[string]string{"kubeconfig": content,
			"jws-kubeconfig-zzzzzz": sign(content, "zzzzzz", token.Secret)}, "knows no token abcdef"},
		"another's signature in its place": {map[string]string{"kubeconfig": content,
			"jws-kubeconfig-abcdef": sign(content, "zzzzzz", token.Secret)}, "its secret is not the one"},
		"another secret": {map[string]string{"kubeconfig": content,
			"jws-kubeconfig-abcdef": sign(content, token.ID, "0123456789abcdeg")}, "its secret is not the one"},
		"other content": {map[string]string{"kubeconfig": content + " ", "jws-kubeconfig-abcdef": good},
			"its secret is not the one"},
		"an empty signature": {map[string]string{"kubeconfig": content, "jws-kubeconfig-abcdef": ""},
			"its secret is not the one"},
		"no content": {map[string]string{"jws-kubeconfig-abcdef": sign("", token.ID, token.Secret)},
			"says nothing of it"},
		"nothing": {nil, "says nothing of it"},
	} {
		err := CheckSignature(row.info, token)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
		if err != nil && strings.Contains(err.Error(), token.Secret) {
			t.Errorf("%s: the secret is in the sentence %v", name, err)
		}
		if waits := errors.As(err, &errUnsigned{}); waits != strings.Contains(row.want, "knows no token") {
			t.Errorf("%s: waited for: %t", name, waits)
		}
	}
}

// authority is a certificate for a key, valid for as many hours.
func authority(t *testing.T, key *ecdsa.PrivateKey, hours int) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(hours)), Subject: pkix.Name{CommonName: "ca"},
		NotAfter: time.Now().Add(time.Duration(hours) * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newKey(t *testing.T) (key *ecdsa.PrivateKey, pin string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	// What openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum prints, as kubeadm's documents say.
	sum := sha256.Sum256(public)
	return key, "sha256:" + hex.EncodeToString(sum[:])
}

// The key counts, not the certificate; and no authority comes in beside the one that is named.
func TestCheckPins(t *testing.T) {
	key, pin := newKey(t)
	other, otherPin := newKey(t)
	mine, renewed, foreign := authority(t, key, 1), authority(t, key, 2), authority(t, other, 1)
	for name, row := range map[string]struct {
		bundle []byte
		pins   []string
		want   string
	}{
		"its key":                  {mine, []string{pin}, ""},
		"a new certificate of it":  {renewed, []string{pin}, ""},
		"one of two hashes":        {mine, []string{otherPin, pin}, ""},
		"two, both named":          {slices.Concat(mine, foreign), []string{otherPin, pin}, ""},
		"another key":              {foreign, []string{pin}, "the mesh's authority is " + otherPin + ", not " + pin},
		"two, one of them foreign": {slices.Concat(mine, foreign), []string{pin}, "the mesh's authority is "},
		"no hash":                  {mine, nil, "the mesh's authority is "},
		"no certificate":           {[]byte("x"), []string{pin}, "names no authority"},
		"nothing":                  {nil, []string{pin}, "names no authority"},
		"no certificate inside": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}),
			[]string{pin}, "reading the mesh's authority"},
	} {
		err := CheckPins(row.bundle, row.pins)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

func TestCheckClock(t *testing.T) {
	server := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for off, want := range map[time.Duration]string{
		0: "", maxSkew: "", -maxSkew: "", maxSkew + time.Second: "is 5m1s ahead of the apiserver's",
		-maxSkew - time.Second: "is 5m1s behind the apiserver's",
	} {
		err := CheckClock(server, server.Add(off))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", off, err, want)
		}
	}
}
