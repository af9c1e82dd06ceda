package signers

import (
	"crypto/x509"
	"math/big"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"keelson.dev/kit/seconds"
)

const (
	// backdate is by how much clocks may be behind that of the signer. It is part of the time that a certificate lasts,
	// unless that is short.
	backdate = 5 * time.Minute
	short    = 8 * time.Hour
	// shortest is the least that a certificate lasts, whatever is asked for.
	shortest = 10 * time.Minute
)

// usageBits and usagePurposes are what the words of the API for usages are in a certificate: those that rules allow.
var (
	usageBits = map[certificatesv1.KeyUsage]x509.KeyUsage{
		certificatesv1.UsageDigitalSignature: x509.KeyUsageDigitalSignature,
		certificatesv1.UsageKeyEncipherment:  x509.KeyUsageKeyEncipherment,
	}
	usagePurposes = map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
		certificatesv1.UsageClientAuth: x509.ExtKeyUsageClientAuth,
		certificatesv1.UsageServerAuth: x509.ExtKeyUsageServerAuth,
	}
)

// Terms are on what a certificate is issued.
type Terms struct {
	// Serial is a number that no other certificate has.
	Serial *big.Int
	// Longest is how long a certificate lasts at most, AuthorityEnds when that of the authority ends.
	Longest       time.Duration
	AuthorityEnds time.Time
	Now           time.Time
}

// Template is the certificate for a request that Check has found nothing wrong with. It has of the request the
// subject, the alternative names and the key, and none of the extensions besides; it is no authority's.
func Template(request *x509.CertificateRequest, spec *certificatesv1.CertificateSigningRequestSpec,
	t Terms) *x509.Certificate {
	certificate := &x509.Certificate{
		SerialNumber: t.Serial,
		Subject:      request.Subject,
		DNSNames:     request.DNSNames, IPAddresses: request.IPAddresses, EmailAddresses: request.EmailAddresses,
		URIs:                  request.URIs,
		BasicConstraintsValid: true,
	}
	for _, usage := range spec.Usages {
		certificate.KeyUsage |= usageBits[usage]
		if purpose, known := usagePurposes[usage]; known {
			certificate.ExtKeyUsage = append(certificate.ExtKeyUsage, purpose)
		}
	}
	lasts := t.Longest
	if asked := spec.ExpirationSeconds; asked != nil {
		lasts = min(max(seconds.Of(*asked), shortest), t.Longest)
	}
	certificate.NotBefore, certificate.NotAfter = t.Now.Add(-backdate), t.Now.Add(lasts-backdate)
	if lasts < short {
		certificate.NotAfter = t.Now.Add(lasts)
	}
	if certificate.NotAfter.After(t.AuthorityEnds) {
		certificate.NotAfter = t.AuthorityEnds
	}
	return certificate
}
