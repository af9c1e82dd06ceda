package csrsigning

import (
	"crypto/x509"
	"math/big"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/certrequest"
	"keelson.dev/services/workload-controllers/internal/signers"
)

// reasonRefused is why a request has failed that its signer's rules forbid.
const reasonRefused = "SignerValidationFailure"

type csr = certificatesv1.CertificateSigningRequest

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Request *csr
	// Authority is the certificate of who signs, Longest how long what it signs lasts at most.
	Authority *x509.Certificate
	Longest   time.Duration
	// Serial is the number of the certificate, if there will be one.
	Serial *big.Int
	Now    time.Time
}

// Plan is what one pass does: at most one of the three is set.
type Plan struct {
	// Certificate is what is signed for Key.
	Certificate *x509.Certificate
	Key         any
	// Fail is the condition of a request that the signer's rules forbid.
	Fail *certificatesv1.CertificateSigningRequestCondition
	// Expired says that the authority may sign nothing any more, or not yet.
	Expired bool
}

// isDue reports whether a request waits for one of the signers here: it is approved, and has neither failed nor got its
// certificate.
func isDue(r *csr) bool {
	return r.DeletionTimestamp == nil && slices.Contains(signers.Names(), r.Spec.SignerName) &&
		len(r.Status.Certificate) == 0 && has(r, certificatesv1.CertificateApproved) &&
		!has(r, certificatesv1.CertificateDenied) && !has(r, certificatesv1.CertificateFailed)
}

func has(r *csr, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// Decide signs what is approved and allowed. What has been approved but is not allowed has failed for good: what is
// asked for does not change.
func Decide(in Input) Plan {
	r := in.Request
	if !isDue(r) {
		return Plan{}
	}
	request, err := certrequest.Parse(r.Spec.Request)
	if err == nil {
		err = signers.Check(r.Spec.SignerName, request, r.Spec.Usages)
	}
	switch now := metav1.NewTime(in.Now); {
	case err != nil:
		return Plan{Fail: &certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateFailed,
			Status: corev1.ConditionTrue, Reason: reasonRefused, Message: err.Error(),
			LastUpdateTime: now, LastTransitionTime: now}}
	case in.Now.Before(in.Authority.NotBefore) || !in.Now.Before(in.Authority.NotAfter):
		return Plan{Expired: true}
	}
	return Plan{Key: request.PublicKey, Certificate: signers.Template(request, &r.Spec, signers.Terms{
		Serial: in.Serial, Longest: in.Longest, AuthorityEnds: in.Authority.NotAfter, Now: in.Now})}
}
