package certificatesigningrequest

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

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/certrequest/certrequesttest"
	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// asking is a valid request, edited.
func asking(t *testing.T, edits ...func(*csr)) *csr {
	t.Helper()
	r := &csr{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    certrequesttest.For(t, pkix.Name{CommonName: "ann"}),
		SignerName: "example.com/clients", Usages: []certificatesv1.KeyUsage{"client auth"}}}
	r.Name = "ann"
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// issued is a certificate.
func issued(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der)
}

func TestValidate(t *testing.T) {
	asks := func(usages ...certificatesv1.KeyUsage) func(*csr) { return func(r *csr) { r.Spec.Usages = usages } }
	lasts := func(seconds int32) func(*csr) { return func(r *csr) { r.Spec.ExpirationSeconds = ptr.To(seconds) } }
	for _, row := range []struct {
		name string
		edit func(*csr)
		want []string
	}{
		{"as it must be", func(*csr) {}, nil},
		{"nothing", func(r *csr) { r.Spec = certificatesv1.CertificateSigningRequestSpec{} }, []string{
			`spec.request: Invalid value: "0 bytes": PEM block type must be CERTIFICATE REQUEST`,
			"spec.usages: Required value", "spec.signerName: Required value"}},
		{"two requests", func(r *csr) { r.Spec.Request = append(r.Spec.Request, r.Spec.Request...) },
			[]string{"spec.request: Invalid value: "}},
		{"every usage", asks(usages...), nil},
		{"an unknown usage", asks("client auth", "client-auth"), []string{
			`spec.usages[1]: Unsupported value: "client-auth": supported values: "any", "crl sign", `}},
		{"a usage twice", asks("client auth", "server auth", "client auth"), []string{
			`spec.usages[2]: Duplicate value: "client auth"`}},
		{"no signer", func(r *csr) { r.Spec.SignerName = "clients" }, []string{"spec.signerName: Invalid value"}},
		{"the signer of earlier versions", func(r *csr) { r.Spec.SignerName = "kubernetes.io/legacy-unknown" },
			[]string{"spec.signerName: Invalid value"}},
		{"ten minutes", lasts(600), nil},
		{"less than ten minutes", lasts(599), []string{"spec.expirationSeconds: Invalid value: 599: may not specify " +
			"a duration less than 600 seconds (10 minutes)"}},
		{"no time", lasts(0), []string{"spec.expirationSeconds: Invalid value: 0"}},
		{"time that is over", lasts(-1 << 31), []string{"spec.expirationSeconds: Invalid value: -2147483648"}},
		{"the longest time", lasts(1<<31 - 1), nil},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(asking(t, row.edit)), row.want...) })
	}
}

func with(kinds ...certificatesv1.RequestConditionType) []condition {
	var all []condition
	for _, kind := range kinds {
		all = append(all, condition{Type: kind, Status: "True"})
	}
	return all
}

const (
	approved = certificatesv1.CertificateApproved
	denied   = certificatesv1.CertificateDenied
	failed   = certificatesv1.CertificateFailed
)

// What is allowed depends on who writes: one who approves, or anybody else.
func TestValidateUpdate(t *testing.T) {
	certificate, another := issued(t), issued(t)
	const path = "status.conditions"
	told := func(kind certificatesv1.RequestConditionType, message string) []condition {
		c := with(kind)
		c[0].Message = message
		return c
	}
	of := func(status string) []condition {
		c := with(approved)
		c[0].Status = "False"
		if status != "" {
			c[0].Type = certificatesv1.RequestConditionType(status)
		}
		return c
	}
	for _, row := range []struct {
		name                   string
		was, now               []condition
		wasIssued, nowIssued   []byte
		byOthers, byWhoApprove []string
	}{
		{name: "nothing"},
		{name: "approved", now: with(approved),
			byOthers: []string{path + `: Forbidden: updates may not add a condition of type "Approved"`}},
		{name: "denied", now: with(denied),
			byOthers: []string{path + `: Forbidden: updates may not add a condition of type "Denied"`}},
		{name: "failed", now: with(failed)},
		{name: "approved and issued", was: with(approved), now: with(approved), nowIssued: certificate},
		{name: "both", was: with(approved), now: with(approved, denied),
			byOthers: []string{path + `[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually`,
				path + ": Forbidden: updates may not add"},
			byWhoApprove: []string{path + `[1].type: Invalid value: "Denied"`}},
		{name: "another verdict", was: with(denied), now: with(approved),
			byOthers: []string{path + `: Forbidden: updates may not remove a condition of type "Denied"`,
				path + `: Forbidden: updates may not add a condition of type "Approved"`},
			byWhoApprove: []string{path + `: Forbidden: updates may not remove a condition of type "Denied"`}},
		{name: "another reason", was: told(approved, "a"), now: told(approved, "b"),
			byOthers:     []string{path + `: Forbidden: updates may not modify a condition of type "Approved"`},
			byWhoApprove: []string{path + `: Forbidden: updates may not modify a condition of type "Approved"`}},
		{name: "failed no more", was: with(failed),
			byOthers:     []string{path + `: Forbidden: updates may not remove a condition of type "Failed"`},
			byWhoApprove: []string{path + `: Forbidden: updates may not remove a condition of type "Failed"`}},
		{name: "failed for another reason", was: told(failed, "a"), now: told(failed, "b")},
		{name: "twice", now: with("Seen", "Seen"), byOthers: []string{path + `[1].type: Duplicate value: "Seen"`},
			byWhoApprove: []string{path + `[1].type: Duplicate value: "Seen"`}},
		{name: "of no type", now: with(""), byOthers: []string{path + "[0].type: Required value"},
			byWhoApprove: []string{path + "[0].type: Required value"}},
		{name: "not approved", now: of(""), byOthers: []string{
			path + `[0].status: Unsupported value: "False": supported values: "True"`, path + ": Forbidden"},
			byWhoApprove: []string{path + `[0].status: Unsupported value: "False"`}},
		{name: "something else that is not so", now: of("Seen")},
		{name: "of no status", now: []condition{{Type: "Seen"}},
			byOthers:     []string{path + "[0].status: Required value"},
			byWhoApprove: []string{path + "[0].status: Required value"}},
		{name: "a chain", nowIssued: append(append([]byte("for people\n"), certificate...), another...)},
		{name: "no certificate", nowIssued: []byte("hello"),
			byOthers:     []string{"status.certificate: Invalid value: \"<certificate data>\": must contain at least"},
			byWhoApprove: []string{"status.certificate: Invalid value"}},
		{name: "a key", nowIssued: append(append([]byte(nil), certificate...), block("PRIVATE KEY", []byte("x"))...),
			byOthers: []string{"status.certificate: Invalid value: \"<certificate data>\": only CERTIFICATE PEM " +
				"blocks are allowed, found \"PRIVATE KEY\""},
			byWhoApprove: []string{"status.certificate: Invalid value"}},
		{name: "a header", nowIssued: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{
			"a": "b"}}), byOthers: []string{"status.certificate: Invalid value: \"<certificate data>\": no PEM block " +
			"headers"}, byWhoApprove: []string{"status.certificate: Invalid value"}},
		{name: "an empty block", nowIssued: block("CERTIFICATE", nil),
			byOthers: []string{"status.certificate: Invalid value"}, byWhoApprove: []string{"status.certificate: Inv"}},
		{name: "another certificate", wasIssued: certificate, nowIssued: another,
			byOthers:     []string{"status.certificate: Forbidden: updates may not modify existing certificate"},
			byWhoApprove: []string{"status.certificate: Forbidden"}},
		{name: "the certificate taken away", wasIssued: certificate,
			byOthers:     []string{"status.certificate: Forbidden: updates may not clear existing certificate content"},
			byWhoApprove: []string{"status.certificate: Forbidden"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, now := asking(t), asking(t)
			old.Status = certificatesv1.CertificateSigningRequestStatus{Conditions: row.was, Certificate: row.wasIssued}
			now.Status = certificatesv1.CertificateSigningRequestStatus{Conditions: row.now, Certificate: row.nowIssued}
			fieldtest.Check(t, ValidateUpdate(now, old), row.byOthers...)
			fieldtest.Check(t, ValidateApproval(now, old), row.byWhoApprove...)
		})
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
