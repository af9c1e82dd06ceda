package csrcleaner

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// issued returns a certificate with the end.
func issued(t *testing.T, end time.Time) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestDecide(t *testing.T) {
	const (
		approved = certificatesv1.CertificateApproved
		denied   = certificatesv1.CertificateDenied
		failed   = certificatesv1.CertificateFailed
		moment   = time.Second
	)
	year := now.AddDate(1, 0, 0)
	for _, row := range []struct {
		name        string
		made        time.Duration // ago
		kinds       []certificatesv1.RequestConditionType
		decided     time.Duration // ago
		certificate []byte
		want        string // why it is deleted; empty: it is not
		after       time.Duration
	}{
		{name: "new", after: 24*time.Hour + moment},
		{name: "a day old", made: 24 * time.Hour, after: moment},
		{name: "older", made: 24*time.Hour + moment, want: "nobody has decided about it"},
		{name: "denied", made: 30 * time.Hour, kinds: []certificatesv1.RequestConditionType{denied},
			after: time.Hour + moment},
		{name: "denied an hour ago", decided: time.Hour, kinds: []certificatesv1.RequestConditionType{denied},
			after: moment},
		{name: "denied before that", decided: time.Hour + moment, want: "it is denied",
			kinds: []certificatesv1.RequestConditionType{denied}},
		{name: "failed an hour ago", decided: time.Hour, after: moment,
			kinds: []certificatesv1.RequestConditionType{approved, failed}},
		{name: "failed before that", decided: time.Hour + moment, want: "it has failed",
			kinds: []certificatesv1.RequestConditionType{approved, failed}},
		{name: "approved", made: 30 * time.Hour, decided: 29 * time.Hour,
			kinds: []certificatesv1.RequestConditionType{approved}},
		{name: "issued", decided: time.Hour, kinds: []certificatesv1.RequestConditionType{approved},
			certificate: issued(t, year), after: moment},
		{name: "issued before that", decided: time.Hour + moment, want: "its certificate is issued",
			kinds: []certificatesv1.RequestConditionType{approved}, certificate: issued(t, year)},
		{name: "issued for a short time", kinds: []certificatesv1.RequestConditionType{approved},
			certificate: issued(t, now.Add(10*time.Minute)), after: 10*time.Minute + moment},
		{name: "expired", kinds: []certificatesv1.RequestConditionType{approved},
			certificate: issued(t, now.Add(-moment)), want: "its certificate has expired"},
		{name: "issued, but unreadable", kinds: []certificatesv1.RequestConditionType{approved},
			certificate: []byte("hello"), after: time.Hour + moment},
		{name: "told something else", made: 30 * time.Hour, kinds: []certificatesv1.RequestConditionType{"Seen"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &certificatesv1.CertificateSigningRequest{}
			r.CreationTimestamp = metav1.NewTime(now.Add(-row.made))
			r.Status.Certificate = row.certificate
			for _, kind := range row.kinds {
				r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
					Type: kind, Status: "True", LastUpdateTime: metav1.NewTime(now.Add(-row.decided))})
			}
			before := r.DeepCopy()
			in := Input{Request: r, Now: now}
			plan := Decide(in)
			if plan.Delete != (row.want != "") || plan.Delete && plan.Because != row.want || plan.After != row.after {
				t.Errorf("deletes %v because %s, looks again after %s; want %q, %s", plan.Delete, plan.Because,
					plan.After, row.want, row.after)
			}
			// When the controller looks again, the request is due.
			if in.Now = now.Add(plan.After); plan.After > 0 && !Decide(in).Delete {
				t.Errorf("after %s it does nothing", plan.After)
			}
			says := account(in, plan).Explanation().Summary
			if plan.Delete != strings.HasPrefix(says, "in its next pass deletes it: ") {
				t.Errorf("it says %q", says)
			}
			if !reflect.DeepEqual(before, r) {
				t.Error("the decision changed its input")
			}
		})
	}
}
