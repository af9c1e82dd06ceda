package csrcleaner

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// How long requests are kept: decided ones, for users to read, and undecided ones.
const (
	decidedFor = time.Hour
	pendingFor = 24 * time.Hour
)

type csr = certificatesv1.CertificateSigningRequest

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Request *csr
	Now     time.Time
}

// Plan is what one pass does.
type Plan struct {
	// Due is when the request is deleted, Because is the reason; both are zero for a request that is kept until it
	// changes.
	Due     time.Time
	Because string
	// Delete says that the request is due now; otherwise After is how long until then.
	Delete bool
	After  time.Duration
}

// Decide returns when a request is deleted. An approved request stays until its signer has issued the certificate.
func Decide(in Input) Plan {
	var plan Plan
	until := func(due time.Time, because string) {
		if plan.Due.IsZero() || due.Before(plan.Due) {
			plan.Due, plan.Because = due, because
		}
	}
	r := in.Request
	issued := len(r.Status.Certificate) > 0
	if len(r.Status.Conditions) == 0 {
		until(r.CreationTimestamp.Add(pendingFor), "nobody has decided about it")
	}
	for _, c := range r.Status.Conditions {
		switch decided := c.LastUpdateTime; {
		case decided.IsZero():
		case c.Type == certificatesv1.CertificateDenied:
			until(decided.Add(decidedFor), "it is denied")
		case c.Type == certificatesv1.CertificateFailed:
			until(decided.Add(decidedFor), "it has failed")
		case c.Type == certificatesv1.CertificateApproved && issued:
			until(decided.Add(decidedFor), "its certificate is issued")
		}
		if end := expires(r.Status.Certificate); c.Type == certificatesv1.CertificateApproved && !end.IsZero() {
			until(end, "its certificate has expired")
		}
	}
	if plan.Due.IsZero() {
		return plan
	}
	plan.Delete = plan.Due.Before(in.Now)
	if !plan.Delete {
		// A request is not yet overdue at the very moment that it is due.
		plan.After = plan.Due.Sub(in.Now) + time.Second
	}
	return plan
}

// expires returns when an issued certificate expires; zero if there is none.
func expires(text []byte) time.Time {
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter
}
