package certificaterequests

import (
	"bytes"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/kit/certrequest"
)

// everything is the group whose members may do everything.
const everything = "system:masters"

// signs reports whether a write of /status issues a certificate or changes the conditions of the request.
func signs(updated, old *certificatesv1.CertificateSigningRequest) bool {
	return !bytes.Equal(updated.Status.Certificate, old.Status.Certificate) ||
		!equality.Semantic.DeepEqual(updated.Status.Conditions, old.Status.Conditions)
}

// checkSubject refuses a request for a client certificate of the API itself that makes its holder a member of
// everything.
func checkSubject(asked *certificatesv1.CertificateSigningRequest) error {
	if asked.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	request, err := certrequest.Parse(asked.Spec.Request)
	if err != nil {
		return fmt.Errorf("spec.request: %w", err)
	}
	if slices.Contains(request.Subject.Organization, everything) {
		return fmt.Errorf("use of %s signer with %s group is not allowed", asked.Spec.SignerName, everything)
	}
	return nil
}
