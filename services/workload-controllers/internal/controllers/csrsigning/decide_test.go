package csrsigning

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/certrequest/certrequesttest"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// asking returns an approved request for a client certificate, edited.
func asking(t *testing.T, edits ...func(*csr)) *csr {
	t.Helper()
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "asked"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    certrequesttest.For(t, pkix.Name{CommonName: "ann"}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		}}
	told(certificatesv1.CertificateApproved)(r)
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func told(kind certificatesv1.RequestConditionType) func(*csr) {
	return func(r *csr) {
		r.Status.Conditions = append(r.Status.Conditions,
			certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: "True"})
	}
}

func unapproved(r *csr) { r.Status.Conditions = nil }

// No unapproved request is signed, and none that the rules forbid, whoever approved it.
func TestDecide(t *testing.T) {
	const signs, refuses = "signs its certificate, which ends at 2026-01-10T12:55:00Z", "lets it fail: "
	for _, row := range []struct {
		name    string
		request *csr
		at      time.Time // zero: now
		want    string
	}{
		{name: "approved", request: asking(t), want: "in its next pass " + signs},
		{name: "new", request: asking(t, unapproved), want: "waits for nothing: it signs nothing that is not approved"},
		{name: "denied", request: asking(t, unapproved, told(certificatesv1.CertificateDenied)),
			want: "waits for nothing: it is denied"},
		{name: "approved and denied", request: asking(t, told(certificatesv1.CertificateDenied)),
			want: "waits for nothing: it is denied"},
		{name: "not approved after all", request: asking(t, func(r *csr) {
			r.Status.Conditions[0].Status = "False"
		}), want: "waits for nothing: it signs nothing that is not approved"},
		{name: "failed", request: asking(t, told(certificatesv1.CertificateFailed)),
			want: "waits for nothing: it has failed"},
		{name: "issued", request: asking(t, func(r *csr) {
			r.Status.Certificate = []byte("x")
		}), want: "waits for nothing: its certificate is issued"},
		{name: "of another signer", request: asking(t, func(r *csr) {
			r.Spec.SignerName = "example.com/clients"
		}), want: "waits for nothing: the signer example.com/clients is somebody else"},
		{name: "for another use", request: asking(t, func(r *csr) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		}), want: "in its next pass " + refuses + `usages: "server auth" is not allowed`},
		{name: "of no node", request: asking(t, func(r *csr) {
			r.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}), want: "in its next pass " + refuses + "subject: the organization must be system:nodes"},
		{name: "unreadable", request: asking(t, func(r *csr) {
			r.Spec.Request = append(r.Spec.Request, r.Spec.Request...)
		}), want: "in its next pass " + refuses + "must end with its PEM block"},
		{name: "before the authority", request: asking(t), at: now.Add(-time.Hour - time.Second),
			want: "waits for the authority that signs to be valid"},
		{name: "after the authority", request: asking(t), at: now.AddDate(1, 0, 0),
			want: "waits for the authority that signs to be valid"},
		{name: "refused, and after the authority", request: asking(t, func(r *csr) {
			r.Spec.Usages = nil
		}), at: now.AddDate(2, 0, 0), want: "in its next pass " + refuses},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := Input{Request: row.request, Longest: time.Hour, Serial: big.NewInt(7), Now: now,
				Authority: &x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(55 * time.Minute)}}
			if !row.at.IsZero() {
				in.Now = row.at
			}
			before := row.request.DeepCopy()
			plan := Decide(in)
			if got := account(in, plan).Explanation().Summary; !strings.HasPrefix(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
			set := 0
			for _, is := range []bool{plan.Certificate != nil, plan.Fail != nil, plan.Expired} {
				if is {
					set++
				}
			}
			if set > 1 || (plan.Certificate == nil) != (plan.Key == nil) || isDue(row.request) != (set == 1) {
				t.Errorf("the plan is %+v", plan)
			}
			if c := plan.Fail; c != nil && (c.Type != "Failed" || c.Status != "True" ||
				c.Reason != "SignerValidationFailure" || !c.LastUpdateTime.Time.Equal(now) && row.at.IsZero()) {
				t.Errorf("it fails by %+v", c)
			}
			if !reflect.DeepEqual(before, row.request) {
				t.Error("the decision changed its input")
			}
		})
	}
}
