package noderestriction

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"

	"keelson.dev/kit/certrequest"
)

// checkRequest lets a Node request certificates of the nodes' signers only for itself, so that a request by a Node
// never gets a certificate for another one approved. user is the name by which the Node is known.
func checkRequest(user string, asked *certificatesv1.CertificateSigningRequest) error {
	switch asked.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName:
	default:
		return nil
	}
	request, err := certrequest.Parse(asked.Spec.Request)
	if err != nil {
		return fmt.Errorf("spec.request: %w", err)
	}
	if request.Subject.CommonName != user {
		return fmt.Errorf("can only create a node CSR with CN=%s", user)
	}
	return nil
}
