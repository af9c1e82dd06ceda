package csrsigning

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/signers"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	r := in.Request
	a := explain.Account{Settled: "it has nothing to sign here"}
	switch {
	case plan.Certificate != nil:
		a.Do(1, "signs its certificate, which ends at %s", explain.At(plan.Certificate.NotAfter))
	case plan.Fail != nil:
		a.Do(1, "lets it fail: %s", plan.Fail.Message)
	case plan.Expired:
		a.Wait(explain.Wait{Reason: "AuthorityExpired", For: "the authority that signs to be valid: it is from " +
			explain.At(in.Authority.NotBefore) + " to " + explain.At(in.Authority.NotAfter),
			Ends: "there is another one in --cluster-signing-cert-file"})
	case !slices.Contains(signers.Names(), r.Spec.SignerName):
		a.Settled = "the signer " + r.Spec.SignerName + " is somebody else"
	case has(r, certificatesv1.CertificateFailed):
		a.Settled = "it has failed, and what it asks for does not change"
	case has(r, certificatesv1.CertificateDenied):
		a.Settled = "it is denied"
	case len(r.Status.Certificate) > 0:
		a.Settled = "its certificate is issued"
	case !has(r, certificatesv1.CertificateApproved):
		a.Settled = "it signs nothing that is not approved"
	}
	return a
}
