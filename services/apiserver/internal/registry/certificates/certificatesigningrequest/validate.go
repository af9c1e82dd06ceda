package certificatesigningrequest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/certrequest"
	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/signername"
)

const (
	// legacySigner signed what an earlier version of the API asked for without a signer's name.
	legacySigner = "kubernetes.io/legacy-unknown"
	// minExpirationSeconds is the API's bound.
	minExpirationSeconds = 600
)

var (
	specPath        = field.NewPath("spec")
	conditionsPath  = field.NewPath("status", "conditions")
	certificatePath = field.NewPath("status", "certificate")

	// lasting are the conditions that are not taken away again.
	lasting = append(slices.Clone(verdicts), certificatesv1.CertificateFailed)

	usages = []certificatesv1.KeyUsage{
		certificatesv1.UsageAny, certificatesv1.UsageCRLSign, certificatesv1.UsageCertSign,
		certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageContentCommitment,
		certificatesv1.UsageDataEncipherment, certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature,
		certificatesv1.UsageEmailProtection, certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem,
		certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement,
		certificatesv1.UsageKeyEncipherment, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
		certificatesv1.UsageOCSPSigning, certificatesv1.UsageSMIME, certificatesv1.UsageServerAuth,
		certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
	}
)

// Validate returns what is wrong with a new request.
func Validate(r *csr) field.ErrorList {
	spec := &r.Spec
	var errs field.ErrorList
	if _, err := certrequest.Parse(spec.Request); err != nil {
		errs = append(errs, field.Invalid(specPath.Child("request"), fmt.Sprintf("%d bytes", len(spec.Request)),
			err.Error()))
	}
	if len(spec.Usages) == 0 {
		errs = append(errs, field.Required(specPath.Child("usages"), ""))
	}
	for i, usage := range spec.Usages {
		path := specPath.Child("usages").Index(i)
		errs = append(errs, fieldcheck.OneOf(usage, path, usages...)...)
		if slices.Contains(spec.Usages[:i], usage) {
			errs = append(errs, field.Duplicate(path, usage))
		}
	}
	if path := specPath.Child("signerName"); spec.SignerName == legacySigner {
		errs = append(errs, field.Invalid(path, spec.SignerName, "this version of the API knows no such signer"))
	} else {
		errs = append(errs, signername.Check(spec.SignerName, path)...)
	}
	if seconds := spec.ExpirationSeconds; seconds != nil && *seconds < minExpirationSeconds {
		errs = append(errs, field.Invalid(specPath.Child("expirationSeconds"), *seconds,
			fmt.Sprintf("may not specify a duration less than %d seconds (10 minutes)", minExpirationSeconds)))
	}
	return errs
}

// ValidateUpdate returns what is wrong with what a write has made of a request, unless it was to approve it. What is
// asked for never changes, so that it is not looked at again.
func ValidateUpdate(r, old *csr) field.ErrorList {
	errs := validateStatus(r, old)
	for _, kind := range verdicts {
		switch now, was := find(r, kind), find(old, kind); {
		case len(now) > len(was):
			errs = append(errs, field.Forbidden(conditionsPath,
				fmt.Sprintf("updates may not add a condition of type %q", kind)))
		case len(now) == len(was) && !equality.Semantic.DeepEqual(now, was):
			errs = append(errs, field.Forbidden(conditionsPath,
				fmt.Sprintf("updates may not modify a condition of type %q", kind)))
		}
	}
	return errs
}

// ValidateApproval returns what is wrong with what a write of /approval has made of a request.
func ValidateApproval(r, old *csr) field.ErrorList {
	errs := validateStatus(r, old)
	for _, kind := range verdicts {
		if now, was := find(r, kind), find(old, kind); len(was) > 0 && len(now) >= len(was) &&
			!equality.Semantic.DeepEqual(now, was) {
			errs = append(errs, field.Forbidden(conditionsPath,
				fmt.Sprintf("updates may not modify a condition of type %q", kind)))
		}
	}
	return errs
}

func validateStatus(r, old *csr) field.ErrorList {
	errs := validateConditions(r.Status.Conditions)
	for _, kind := range lasting {
		if len(find(r, kind)) < len(find(old, kind)) {
			errs = append(errs, field.Forbidden(conditionsPath,
				fmt.Sprintf("updates may not remove a condition of type %q", kind)))
		}
	}
	now, was := r.Status.Certificate, old.Status.Certificate
	switch {
	case bytes.Equal(now, was):
		return errs
	case len(was) > 0 && len(now) == 0:
		return append(errs, field.Forbidden(certificatePath, "updates may not clear existing certificate content"))
	case len(was) > 0:
		return append(errs, field.Forbidden(certificatePath, "updates may not modify existing certificate content"))
	}
	if err := checkCertificate(now); err != nil {
		errs = append(errs, field.Invalid(certificatePath, "<certificate data>", err.Error()))
	}
	return errs
}

func validateConditions(conditions []condition) field.ErrorList {
	var errs field.ErrorList
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range conditions {
		path := conditionsPath.Index(i)
		if c.Type == "" {
			errs = append(errs, field.Required(path.Child("type"), ""))
		}
		allowed := []corev1.ConditionStatus{corev1.ConditionTrue}
		if !slices.Contains(lasting, c.Type) {
			allowed = append(allowed, corev1.ConditionFalse, corev1.ConditionUnknown)
		}
		errs = append(errs, fieldcheck.RequiredOneOf(c.Status, path.Child("status"), allowed...)...)
		if seen[c.Type] {
			errs = append(errs, field.Duplicate(path.Child("type"), c.Type))
		}
		seen[c.Type] = true
		if isVerdict(c) && seen[verdicts[0]] && seen[verdicts[1]] {
			errs = append(errs, field.Invalid(path.Child("type"), c.Type,
				"Approved and Denied conditions are mutually exclusive"))
		}
	}
	return errs
}

// checkCertificate says what is wrong with an issued certificate and those of the authorities in between. Text around
// the blocks is for people.
func checkCertificate(text []byte) error {
	for found := false; ; found = true {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			if !found {
				return errors.New("must contain at least one CERTIFICATE PEM block")
			}
			return nil
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) != 0 {
			return errors.New("no PEM block headers are permitted")
		}
		if certificates, err := x509.ParseCertificates(block.Bytes); err != nil {
			return fmt.Errorf("reading a CERTIFICATE PEM block: %w", err)
		} else if len(certificates) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
	}
}
