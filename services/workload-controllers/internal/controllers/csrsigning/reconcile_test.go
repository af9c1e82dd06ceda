package csrsigning

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/signers"
	"keelson.dev/services/workload-controllers/internal/write"
)

// authority writes the files of an authority whose certificate has that end.
func authority(t *testing.T, files signers.Files, end time.Time) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
		NotBefore:             end.Add(-24 * time.Hour),
		NotAfter:              end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{files.Certificate: {Type: "CERTIFICATE", Bytes: der},
		files.Key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// It signs with the authority that the files hold at the time, and writes nothing while there is no valid authority.
func TestReconcile(t *testing.T) {
	good := asking(t)
	good.Name = "good"
	bad := asking(t, func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Usages = nil })
	bad.Name = "bad"
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(good, bad).
		WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}).Build()
	files := signers.DefaultFiles()
	files.Certificate, files.Key = filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "ca.key")
	c := &Controller{files: files, writer: &write.Writer{Client: api, Kind: "certificatesigningrequest"}}
	pass := func(name string) (*certificatesv1.CertificateSigningRequest, error) {
		_, err := c.steps().Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		now := &certificatesv1.CertificateSigningRequest{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: name}, now); err != nil {
			t.Fatal(err)
		}
		return now, err
	}
	if r, err := pass("good"); err == nil || len(r.Status.Certificate) > 0 {
		t.Errorf("without an authority: %+v, %v", r.Status, err)
	}
	authority(t, files, time.Now().Add(-time.Hour))
	if r, err := pass("good"); err == nil || !strings.Contains(err.Error(), "is valid from") ||
		len(r.Status.Certificate) > 0 {
		t.Errorf("with one that has expired: %+v, %v", r.Status, err)
	}
	authority(t, files, time.Now().Add(time.Hour))
	r, err := pass("good")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(r.Status.Certificate)
	if block == nil {
		t.Fatalf("issued: %q", r.Status.Certificate)
	}
	if got, err := x509.ParseCertificate(block.Bytes); err != nil || got.Subject.CommonName != "ann" ||
		got.Issuer.CommonName != "ca" || time.Until(got.NotAfter) > time.Hour {
		t.Errorf("issued: %+v, %v", got, err)
	}
	if again, err := pass("good"); err != nil || again.ResourceVersion != r.ResourceVersion {
		t.Errorf("it is written again: %v", err)
	}
	if r, err := pass("bad"); err != nil || len(r.Status.Certificate) > 0 || len(r.Status.Conditions) != 2 ||
		r.Status.Conditions[1].Type != certificatesv1.CertificateFailed {
		t.Errorf("what is refused: %+v, %v", r.Status, err)
	}
}
