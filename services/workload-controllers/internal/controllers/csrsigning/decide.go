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

// reasonRefused is the reason of the condition Failed of a request that the signer's rules forbid.
const reasonRefused = "SignerValidationFailure"

type csr = certificatesv1.CertificateSigningRequest

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Request *csr
	// Authority is the certificate of the signing authority, Longest the longest lifetime of a certificate that it
	// signs.
	Authority *x509.Certificate
	Longest   time.Duration
	// Serial is the serial number for the certificate, if one is signed.
	Serial *big.Int
	Now    time.Time
}

// Plan is what one pass does: at most one of the three is set.
type Plan struct {
	// Certificate is the certificate to sign for Key.
	Certificate *x509.Certificate
	Key         any
	// Fail is the condition of a request that the signer's rules forbid.
	Fail *certificatesv1.CertificateSigningRequestCondition
	// Expired says that the authority's certificate has expired or is not valid yet.
	Expired bool
}

// isDue reports whether a request waits for one of these signers: it is approved, and has neither failed nor got its
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

// Decide signs an approved request that the rules allow. An approved request that they forbid fails for good: its
// spec does not change.
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
