package signers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// authority writes the files of one whose certificate lasts until end.
func authority(t *testing.T, isCA bool, end time.Time) Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: isCA,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: now.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f, dir := DefaultFiles(), t.TempDir()
	f.Certificate, f.Key = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	for path, block := range map[string]*pem.Block{f.Certificate: {Type: "CERTIFICATE", Bytes: der},
		f.Key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestHowLongACertificateLasts(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, row := range []struct {
		name  string
		asked *int32
		end   time.Duration // of the authority
		want  time.Duration // from now
	}{
		{"as long as any", nil, 10 * year, year - 5*time.Minute},
		{"a day", ptr.To[int32](86400), 10 * year, 24*time.Hour - 5*time.Minute},
		{"eight hours", ptr.To[int32](8 * 3600), 10 * year, 8*time.Hour - 5*time.Minute},
		{"a little less", ptr.To[int32](8*3600 - 1), 10 * year, 8*time.Hour - time.Second},
		{"ten minutes", ptr.To[int32](600), 10 * year, 10 * time.Minute},
		{"less than that", ptr.To[int32](1), 10 * year, 10 * time.Minute},
		{"time that is over", ptr.To[int32](-5), 10 * year, 10 * time.Minute},
		{"more than any", ptr.To[int32](1<<31 - 1), 10 * year, year - 5*time.Minute},
		{"no longer than the authority", nil, time.Hour, time.Hour},
	} {
		spec := &certificatesv1.CertificateSigningRequestSpec{ExpirationSeconds: row.asked}
		got := Template(
			&x509.CertificateRequest{},
			spec,
			Terms{Longest: year, AuthorityEnds: now.Add(row.end), Now: now},
		)
		if !got.NotBefore.Equal(now.Add(-5*time.Minute)) || !got.NotAfter.Equal(now.Add(row.want)) {
			t.Errorf("%s: from %s to %s", row.name, got.NotBefore.Sub(now), got.NotAfter.Sub(now))
		}
	}
}

// What is signed is what was checked: nothing of a request gets into a certificate besides.
func TestSign(t *testing.T) {
	files := authority(t, true, now.AddDate(10, 0, 0))
	ca, err := files.Load()
	if err != nil {
		t.Fatal(err)
	}
	key := ecdsaKey(t, elliptic.P256())
	template := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"},
			ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "smuggled"}}},
		DNSNames: []string{"n1"},
		// certificate policies, which no signer issues
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 32}, Value: []byte{0x30, 0}}},
	}
	spec := &certificatesv1.CertificateSigningRequestSpec{Usages: []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}}
	number, err := NewSerial()
	if err != nil {
		t.Fatal(err)
	}
	asked := request(t, template, key)
	text, err := ca.Sign(Template(asked, spec, Terms{Serial: number, Longest: time.Hour,
		AuthorityEnds: ca.Certificate.NotAfter, Now: now}), asked.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
		t.Fatalf("it is %q", text)
	}
	got, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	if _, err := got.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "n1"}); err != nil {
		t.Errorf("it serves no client: %v", err)
	}
	if got.IsCA || !got.BasicConstraintsValid || got.KeyUsage != x509.KeyUsageDigitalSignature ||
		!slices.Equal(got.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) ||
		got.SerialNumber.Cmp(number) != 0 || len(got.Policies) > 0 || strings.Contains(got.Subject.String(), "1.2.3") ||
		!reflect.DeepEqual(got.PublicKey, asked.PublicKey) {
		t.Errorf("it is %s with %v, %v, %v", got.Subject, got.KeyUsage, got.ExtKeyUsage, got.Policies)
	}
	if next, err := NewSerial(); err != nil || next.Cmp(number) == 0 {
		t.Errorf("two certificates have the number %s, %v", number, err)
	}
}

func TestFiles(t *testing.T) {
	good, other, leaf := authority(t, true, now.AddDate(1, 0, 0)), authority(t, true, now.AddDate(1, 0, 0)),
		authority(t, false, now.AddDate(1, 0, 0))
	edited := func(edit func(*Files)) Files {
		f := good
		edit(&f)
		return f
	}
	for _, row := range []struct {
		name  string
		files Files
		want  string
	}{
		{"an authority", good, ""},
		{"none", DefaultFiles(), ""},
		{"no key", edited(func(f *Files) { f.Key = "" }),
			"--cluster-signing-cert-file: needs --cluster-signing-key-file"},
		{"a key alone", edited(func(f *Files) { f.Certificate = "" }), "--cluster-signing-cert-file: needs"},
		{"somebody else's key", edited(func(f *Files) { f.Key = other.Key }),
			"--cluster-signing-cert-file: tls: private"},
		{"a missing file", edited(func(f *Files) { f.Key += "x" }), "--cluster-signing-cert-file: open "},
		{"no authority", leaf,
			"--cluster-signing-cert-file: " + leaf.Certificate + " must begin with the certificate of"},
		{"ten minutes", edited(func(f *Files) { f.Longest = 10 * time.Minute }), ""},
		{"less", edited(func(f *Files) { f.Longest = 10*time.Minute - 1 }), "--cluster-signing-duration: "},
	} {
		err := row.files.Validate()
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	if DefaultFiles().Named() || !good.Named() {
		t.Error("an authority is named by its files")
	}
}
